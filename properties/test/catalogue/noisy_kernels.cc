#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/problem/fields.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"
#include "properties/test/inspect.h"

namespace attest {

std::uint64_t hash_of_call(const Case& c) {
  return hash_of(c) + (c.provenance.strides.has_value() ? 0x9e3779b97f4a7c15 : 0);
}

double noise_of(std::uint64_t hash) {
  hash ^= hash >> 31;
  hash *= 0x9e3779b97f4a7c15;
  hash ^= hash >> 29;
  const double size = 0.25 + 0.75 * static_cast<double>(hash >> 12 & 0xffff) / 65536;
  return hash % 2 == 0 ? size : -size;
}

namespace {

/// A hash of a tensor's bytes; of its shape too.
std::uint64_t hash_of(const Tensor& t) {
  Case only;
  only[Slot::q] = t;
  return hash_of(only);
}

/// Noise of `hash`, the same on each element where `here`; none where there is no hash. Of one size, whatever the
/// answer is, so that it tells of nothing else.
using Where = std::function<bool(const Shape& out, std::int64_t element)>;
Spoilt::Fault noisy(std::function<std::optional<std::uint64_t>(const Case&)> hash, Where here) {
  return [hash = std::move(hash), here = std::move(here)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    const std::optional<std::uint64_t> found = hash(c);
    if (reply.status != CallStatus::ok || !found) return reply;
    const double noise = noise_of(*found);
    reply.out =
        mapped(reply.out, [&](std::int64_t e, double old) { return here(reply.out.shape(), e) ? old + noise : old; });
    return reply;
  };
}
bool everywhere(const Shape&, std::int64_t) {
  return true;
}
/// The coordinate of an element on an axis counted from the end: 1 columns, 2 rows, 3 heads.
std::int64_t at_axis(const Shape& out, std::int64_t e, int from_end) {
  for (int a = 1; a < from_end; ++a) e /= out[out.rank() - a];
  return e % out[out.rank() - from_end];
}

WrongKernel looks_at(Slot slot) {
  return {"looks-at " + std::string(name_of(slot)), noisy(
                                                        [slot](const Case& c) -> std::optional<std::uint64_t> {
                                                          if (!c[slot].present()) return std::nullopt;
                                                          return hash_of(c[slot]);
                                                        },
                                                        everywhere)};
}
WrongKernel looks_at(std::string_view what, std::function<double(const Case&)> number) {
  return {
      fmt::format("looks-at {}", what),
      noisy([number = std::move(number)](const Case& c) { return std::bit_cast<std::uint64_t>(number(c)) * 77 + 5; },
            everywhere)};
}
WrongKernel wrong_at(const char* where, Where here) {
  return {std::string("wrong-at ") + where, noisy(hash_of_call, std::move(here))};
}

}  // namespace

std::vector<WrongKernel> noisy_kernels() {
  std::vector<WrongKernel> all;
  all.reserve(32);
  for (int s = 0; s < slot_count; ++s) all.push_back(looks_at(static_cast<Slot>(s)));
  const auto argument = [&](const auto& field) {
    if (!field.is_extent)
      all.push_back(looks_at(field.name, [&field](const Case& c) { return static_cast<double>(c.*field.member); }));
  };
  std::apply([&](const auto&... field) { (argument(field), ...); }, scalar_fields);
  all.push_back(looks_at("M", [](const Case& c) { return static_cast<double>(queries_of(c)); }));
  all.push_back(looks_at("N", [](const Case& c) { return static_cast<double>(keys_of(c)); }));
  all.push_back(looks_at("batch", [](const Case& c) { return static_cast<double>(batch_of(c)); }));
  all.push_back(looks_at("heads", [](const Case& c) { return static_cast<double>(extents_of(c).heads); }));
  all.push_back(looks_at("kv-heads", [](const Case& c) { return static_cast<double>(extents_of(c).kv_heads); }));
  all.push_back(
      looks_at("strides", [](const Case& c) { return static_cast<double>(c.provenance.strides.has_value()); }));
  all.push_back(wrong_at("row-0", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 2) == 0; }));
  all.push_back(wrong_at("row-1", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 2) == 1; }));
  all.push_back(
      wrong_at("last-row", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 2) == o[o.rank() - 2] - 1; }));
  all.push_back(wrong_at("column-0", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 1) == 0; }));
  all.push_back(wrong_at("other-columns", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 1) > 0; }));
  all.push_back(
      wrong_at("head-0", [](const Shape& o, std::int64_t e) { return o.rank() == 4 && at_axis(o, e, 3) == 0; }));
  all.push_back(
      wrong_at("other-heads", [](const Shape& o, std::int64_t e) { return o.rank() == 4 && at_axis(o, e, 3) > 0; }));
  all.push_back(wrong_at("batch-0", [](const Shape& o, std::int64_t e) { return at_axis(o, e, o.rank()) == 0; }));
  all.push_back(wrong_at("other-batch", [](const Shape& o, std::int64_t e) { return at_axis(o, e, o.rank()) > 0; }));
  // One unit in the last place: what is compared bit by bit.
  all.push_back({"wrong-at last-bit", [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                   Reply reply = kernel.run(c, output, want_lse);
                   if (reply.status == CallStatus::ok && hash_of_call(c) / 8 % 2 == 0)
                     reply.out =
                         mapped(reply.out, [](std::int64_t, double old) { return std::nextafter(old, infinity); });
                   return reply;
                 }});
  return all;
}

}  // namespace attest
