#include <string_view>

#include "core/problem/fields.h"
#include "core/support/fnv1a.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/road/fit_form.h"

namespace attest {
namespace {

/// FNV-1a over bytes, then a finaliser that lets every input bit reach every output bit.
class Hash {
 public:
  void add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) state_ = fnv1a(state_, number >> (8 * byte) & 0xff);
  }
  /// With its end marked, so that ("ab", "c") and ("a", "bc") differ.
  void add(std::string_view text) {
    for (const char character : text) state_ = fnv1a(state_, static_cast<unsigned char>(character));
    state_ = fnv1a(state_, 0xff);
  }
  [[nodiscard]] std::uint64_t finished() const {
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

 private:
  std::uint64_t state_ = fnv1a_start;
};

/// Without the variants with which the law does not hold: each draw has any of them.
void leave_out_others(const Property& property, Case& c) {
  for (const Variant& variant : variants_of(c))
    if (!property.holds_under(variant.name)) leave_out(c, variant.name);
  if (!property.holds_under(by_lse)) leave_out_gradient_by_lse(c);
}

}  // namespace

std::uint64_t case_seed(std::uint64_t run_seed, std::string_view property, DType dtype, std::int64_t k) {
  Hash hash;
  hash.add(run_seed);
  hash.add(property);
  hash.add(name_of(dtype));
  hash.add(static_cast<std::uint64_t>(k));
  return hash.finished();
}

Case generate(const Property& property, DType dtype, std::uint64_t run_seed, std::int64_t k, const Shapes& shapes) {
  Draw draw(dtype, case_seed(run_seed, property.name, dtype, k), k, shapes);
  Case c = property.given(draw);
  leave_out_others(property, c);
  c.provenance.property = property.name;
  c.provenance.dtype = name_of(dtype);
  c.provenance.seed = std::to_string(run_seed);
  c.provenance.k = std::to_string(k);
  return c;
}

}  // namespace attest
