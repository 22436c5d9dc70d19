#include "core/support/sha256.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace attest {
namespace {

/// FIPS 180-4, section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::take_block(const std::byte* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t t = 0; t < 16; ++t) {
    for (std::size_t i = 0; i < 4; ++i) w[t] = w[t] << 8U | std::to_integer<std::uint32_t>(block[4 * t + i]);
  }
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t x = w[t - 15], y = w[t - 2];
    w[t] = (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10U) + w[t - 7] +
           (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3U) + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t one =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + constants[t] + w[t];
    const std::uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one;
    d = c, c = b, b = a, a = one + two;
  }
  const std::array<std::uint32_t, 8> last{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < last.size(); ++i) state_[i] += last[i];
}

void Sha256::add(std::span<const std::byte> bytes) {
  std::size_t open = bytes_ % open_.size();
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (open == 0 && bytes.size() >= open_.size()) {
      take_block(bytes.data());
      bytes = bytes.subspan(open_.size());
      continue;
    }
    const std::size_t taken = std::min(bytes.size(), open_.size() - open);
    std::copy_n(bytes.begin(), taken, open_.begin() + static_cast<std::ptrdiff_t>(open));
    bytes = bytes.subspan(taken);
    open = (open + taken) % open_.size();
    if (open == 0) take_block(open_.data());
  }
}

std::string Sha256::hex() {
  const std::uint64_t bits = 8 * bytes_;
  // A one, zeros, and the length in bits, which end a block.
  std::array<std::byte, 72> padding{std::byte{0x80}};
  const std::size_t zeros = (119 - bytes_ % open_.size()) % open_.size();
  for (std::size_t i = 0; i < 8; ++i) padding[1 + zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i) & 0xffU);
  add(std::span<const std::byte>(padding).first(1 + zeros + 8));
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += digits[word >> static_cast<unsigned>(shift) & 0xfU];
  }
  return text;
}

}  // namespace attest
