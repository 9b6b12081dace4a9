# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests of the chart to source: certificates of their own, in the folder $certs.
: "${certs:?}"
mkdir -p -- "$certs"

# authority NAME: a CA.
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
    -keyout "$certs/$1.key" -out "$certs/$1.crt" 2>/dev/null
}
# certificate CA NAME COMMON-NAME
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$3" -keyout "$certs/$2.key" 2>/dev/null |
    openssl x509 -req -days 2 -CA "$certs/$1.crt" -CAkey "$certs/$1.key" -CAcreateserial -out "$certs/$2.crt" \
      -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n') 2>/dev/null
}
