// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/tls_material.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "tests/kit/certificates.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::CertifiedKey;
using ::testing::HasSubstr;
using testing::TestCa;

TEST(DecodeBase64, UndoesEncodeBase64) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    const Result<std::string> back = DecodeBase64(EncodeBase64(bytes));
    ASSERT_TRUE(back) << bytes.size();
    EXPECT_EQ(*back, bytes);
    bytes += static_cast<char>(i * 7);
  }
}

TEST(DecodeBase64, KnowsTheVectorsOfTheRfc) {
  EXPECT_EQ(*DecodeBase64(""), "");
  EXPECT_EQ(*DecodeBase64("Zg=="), "f");
  EXPECT_EQ(*DecodeBase64("Zm8="), "fo");
  EXPECT_EQ(*DecodeBase64("Zm9v"), "foo");
  EXPECT_EQ(*DecodeBase64(" Zm9v\n  YmFy\r\n"), "foobar");
}

TEST(DecodeBase64, RefusesWhatIsNone) {
  for (const char* text : {"Zg", "Zg=", "Z", "Z===", "Zm9v====", "=", "Zg==Zg==", "Zm9*", "Zm9v-_", "Zm9vYg==x"}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

TEST(CheckCaCertificate, WantsACertificate) {
  const TestCa ca;
  EXPECT_TRUE(CheckCaCertificate(ca.cert_pem()));
  EXPECT_TRUE(CheckCaCertificate("a comment\n" + ca.cert_pem()));
  EXPECT_FALSE(CheckCaCertificate(""));
  EXPECT_FALSE(CheckCaCertificate(ca.Issue().key_pem));
  EXPECT_FALSE(CheckCaCertificate(ca.cert_pem().substr(0, 200)));
}

TEST(CheckClientCertificate, WantsAKeyOfTheCertificate) {
  const TestCa ca;
  const CertifiedKey one = ca.Issue();
  const CertifiedKey two = ca.Issue();

  EXPECT_TRUE(CheckClientCertificate(one.cert_pem, one.key_pem));
  EXPECT_THAT(CheckClientCertificate(one.cert_pem, two.key_pem).error().message(), HasSubstr("does not belong"));
  EXPECT_THAT(CheckClientCertificate(one.cert_pem, "x").error().message(), HasSubstr("not a PEM private key"));
  EXPECT_THAT(CheckClientCertificate("x", one.key_pem).error().message(), HasSubstr("not a PEM certificate"));
}

TEST(CertificateExpiry, IsTheEndOfTheFirstCertificate) {
  // OpenSSL's clock: it may be a tick behind that of std::chrono.
  const auto now = [] { return std::chrono::system_clock::from_time_t(std::time(nullptr)); };
  const WallTime before = now();
  const CertifiedKey key = TestCa().Issue({.valid_for = 1000h});

  const Result<WallTime> expiry = CertificateExpiry(key.cert_pem);

  ASSERT_TRUE(expiry);
  EXPECT_GE(*expiry, before + 1000h);
  EXPECT_LE(*expiry, now() + 1000h);
  EXPECT_FALSE(CertificateExpiry("x"));
}

// RFC 5280 has certificates that never end, with the year 9999.
TEST(CertificateExpiry, AnEndBeyondAllClocksIsTheLastTime) {
  const CertifiedKey key = TestCa().Issue({.valid_for = std::chrono::hours(24 * 365 * 1000)});
  const Result<WallTime> expiry = CertificateExpiry(key.cert_pem);
  ASSERT_TRUE(expiry);
  EXPECT_GT(*expiry, WallTime::max() - 1s);
}

}  // namespace
}  // namespace kube
