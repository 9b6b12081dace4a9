// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/ssh_key.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "clientlib/auth/tls_material.h"
#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

// Reads the wire format of RFC 4251.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint32_t Number() {
    std::uint32_t value = 0;
    for (const char c : Bytes(4)) value = (value << 8) | static_cast<unsigned char>(c);
    return value;
  }
  std::string String() { return Bytes(Number()); }
  std::string Bytes(std::size_t n) {
    EXPECT_LE(at_ + n, bytes_.size());
    const std::string out = bytes_.substr(std::min(at_, bytes_.size()), n);
    at_ += n;
    return out;
  }
  std::string Rest() { return Bytes(bytes_.size() - std::min(at_, bytes_.size())); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

SshKey Make(const std::string& comment) {
  auto key = MakeSshKey(comment);
  EXPECT_TRUE(key);
  return key ? *std::move(key) : SshKey();
}

// The blob in "ssh-ed25519 BLOB comment".
std::string PublicBlob(const SshKey& key) {
  const std::size_t begin = key.public_key.find(' ') + 1, end = key.public_key.find(' ', begin);
  return *kube::DecodeBase64(key.public_key.substr(begin, end - begin));
}

// The blob between the armour lines.
std::string PrivateBlob(const SshKey& key) {
  const std::string begin = "-----BEGIN OPENSSH PRIVATE KEY-----\n", end = "-----END OPENSSH PRIVATE KEY-----\n";
  EXPECT_TRUE(key.private_key.starts_with(begin));
  EXPECT_TRUE(key.private_key.ends_with(end));
  return *kube::DecodeBase64(key.private_key.substr(begin.size(), key.private_key.size() - begin.size() - end.size()));
}

TEST(SshKey, ThePublicKeyIsOneLineOfAuthorizedKeys) {
  const SshKey key = Make("team-a/bert");
  EXPECT_TRUE(key.public_key.starts_with("ssh-ed25519 AAAA"));
  EXPECT_TRUE(key.public_key.ends_with(" team-a/bert"));
  EXPECT_EQ(key.public_key.find('\n'), std::string::npos);
  Reader blob(PublicBlob(key));
  EXPECT_EQ(blob.String(), "ssh-ed25519");
  EXPECT_EQ(blob.String().size(), 32U);
  EXPECT_EQ(blob.Rest(), "");
}

TEST(SshKey, ThePrivateKeyIsAnUnencryptedOpenSshKey) {
  // Comments of several lengths: the secret part is padded to a multiple of eight with 1, 2, 3, ...
  for (std::size_t length = 0; length < 9; ++length) {
    const std::string comment(length, 'c');
    const SshKey key = Make(comment);
    Reader blob(PrivateBlob(key));
    EXPECT_EQ(blob.Bytes(15), std::string("openssh-key-v1\0", 15));
    EXPECT_EQ(blob.String(), "none");
    EXPECT_EQ(blob.String(), "none");
    EXPECT_EQ(blob.String(), "");
    EXPECT_EQ(blob.Number(), 1U);
    EXPECT_EQ(blob.String(), PublicBlob(key));
    const std::string secret_text = blob.String();
    EXPECT_EQ(blob.Rest(), "");

    EXPECT_EQ(secret_text.size() % 8, 0U);
    Reader secret(secret_text);
    const std::uint32_t check = secret.Number();
    EXPECT_EQ(secret.Number(), check);
    EXPECT_EQ(secret.String(), "ssh-ed25519");
    const std::string pub = secret.String(), pair = secret.String();
    EXPECT_EQ(pair.size(), 64U);
    EXPECT_EQ(pair.substr(32), pub);
    EXPECT_EQ(secret.String(), comment);
    const std::string padding = secret.Rest();
    EXPECT_LT(padding.size(), 8U);
    for (std::size_t i = 0; i < padding.size(); ++i) EXPECT_EQ(padding[i], static_cast<char>(i + 1));

    // The two halves belong together.
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> derived(
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(pair.data()),
                                     32),
        &EVP_PKEY_free);
    std::string derived_pub(32, '\0');
    std::size_t size = derived_pub.size();
    ASSERT_EQ(EVP_PKEY_get_raw_public_key(derived.get(), reinterpret_cast<unsigned char*>(derived_pub.data()), &size),
              1);
    EXPECT_EQ(derived_pub, pub);
  }
}

TEST(SshKey, LinesOfTheArmourAreShort) {
  const std::string text = Make("c").private_key;
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) EXPECT_LE(end - at, 70U);
  EXPECT_EQ(at, text.size());
}

TEST(SshKey, NoTwoAreAlike) { EXPECT_NE(Make("c").public_key, Make("c").public_key); }

TEST(SshKey, OpenSshItselfReadsIt) {
  // scripts/install-packages brings it (openssh-client).
  ASSERT_EQ(std::system("command -v ssh-keygen >/dev/null 2>&1"), 0) << "no ssh-keygen here";
  const SshKey key = Make("team-a/bert");
  kube::testing::TempDir dir;
  const std::string path = dir.Write("id", key.private_key);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  const std::string expected = dir.Write("expected", key.public_key + "\n");
  const std::string command = "ssh-keygen -y -P '' -f " + path + " | cmp - " + expected;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace grus
