// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/ssh_key.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <memory>

#include "clientlib/auth/tls_material.h"

namespace grus {
namespace {

constexpr std::size_t kKeyBytes = 32;
using Key = std::array<unsigned char, kKeyBytes>;

// The wire format of RFC 4251: numbers are four bytes, big endian; strings carry their length.
void AppendNumber(std::string& out, std::uint32_t n) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((n >> shift) & 0xff);
}
void AppendString(std::string& out, std::string_view text) {
  AppendNumber(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}
std::string_view View(const Key& key) { return {reinterpret_cast<const char*>(key.data()), key.size()}; }

constexpr std::string_view kType = "ssh-ed25519";

std::string PublicBlob(const Key& pub) {
  std::string blob;
  AppendString(blob, kType);
  AppendString(blob, View(pub));
  return blob;
}

// The layout is described in OpenSSH's PROTOCOL.key.
std::string PrivateBlob(const Key& priv, const Key& pub, std::uint32_t check, const std::string& comment) {
  std::string secret;
  AppendNumber(secret, check);
  AppendNumber(secret, check);
  AppendString(secret, kType);
  AppendString(secret, View(pub));
  AppendString(secret, std::string(View(priv)) + std::string(View(pub)));
  AppendString(secret, comment);
  for (char pad = 1; secret.size() % 8 != 0; ++pad) secret += pad;

  std::string blob("openssh-key-v1\0", 15);
  AppendString(blob, "none");  // cipher
  AppendString(blob, "none");  // key derivation
  AppendString(blob, "");      // its options
  AppendNumber(blob, 1);       // keys
  AppendString(blob, PublicBlob(pub));
  AppendString(blob, secret);
  return blob;
}

std::string Armour(const std::string& blob) {
  const std::string text = kube::EncodeBase64(blob);
  std::string out = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  for (std::size_t at = 0; at < text.size(); at += 70) out.append(text, at, 70).append("\n");
  return out.append("-----END OPENSSH PRIVATE KEY-----\n");
}

}  // namespace

kube::Result<SshKey> MakeSshKey(const std::string& comment) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"),
                                                                &EVP_PKEY_free);
  Key priv{}, pub{};
  std::size_t priv_size = priv.size(), pub_size = pub.size();
  std::uint32_t check = 0;
  if (!key || EVP_PKEY_get_raw_private_key(key.get(), priv.data(), &priv_size) != 1 ||
      EVP_PKEY_get_raw_public_key(key.get(), pub.data(), &pub_size) != 1 ||
      RAND_bytes(reinterpret_cast<unsigned char*>(&check), sizeof check) != 1) {
    return kube::Error(kube::ErrorCode::kInternal, "make an ed25519 key: no random source");
  }
  return SshKey{Armour(PrivateBlob(priv, pub, check, comment)),
                std::string(kType) + " " + kube::EncodeBase64(PublicBlob(pub)) + " " + comment};
}

kube::Result<JobKeys> MakeJobKeys(const std::string& comment) {
  kube::Result<SshKey> login = MakeSshKey(comment), host = MakeSshKey(comment);
  if (!login) return std::move(login).error();
  if (!host) return std::move(host).error();
  return JobKeys{*std::move(login), *std::move(host)};
}

}  // namespace grus
