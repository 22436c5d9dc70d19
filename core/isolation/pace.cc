#include "core/isolation/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/problem/cost.h"

namespace attest {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::string_view remedy = "give more time with --timeout SECONDS, or leave such cases out with --no-large";

double seconds(nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::size_t power_of(double cost, std::size_t most) {
  return static_cast<std::size_t>(std::clamp(std::ilogb(cost), 0, static_cast<int>(most) - 1));
}

}  // namespace

/// Of the dearest calls that are no dearer than this, as those tell most of it; of the cheapest where all are.
const Pace::Slowest* Pace::nearest(double cost) const {
  const auto own = by_power_.begin() + static_cast<std::ptrdiff_t>(power_of(cost, by_power_.size()));
  for (auto at = own + 1; at != by_power_.begin();)
    if ((--at)->seconds > 0) return &*at;
  for (auto at = own + 1; at != by_power_.end(); ++at)
    if (at->seconds > 0) return &*at;
  return nullptr;
}

milliseconds Pace::limit_of(const Case& c) const {
  if (given_) return *given_;
  const double cost = cost_of(c);
  if (cost <= small_cost) return ordinary_;
  const std::lock_guard lock(mutex_);
  const Slowest* const known = nearest(cost);
  // Of a kernel that has answered nothing yet, as if a small case took it all of its time.
  const double likely =
      known != nullptr ? patience * known->seconds_per_cost * cost : seconds(ordinary_) * cost / small_cost;
  const milliseconds longest = longest_limit * ordinary_;
  if (!(likely < seconds(longest))) return longest;
  return std::max(ordinary_, std::chrono::ceil<milliseconds>(std::chrono::duration<double>(likely)));
}

void Pace::answered(const Case& c, nanoseconds took) {
  if (given_) return;
  const double cost = cost_of(c);
  const std::lock_guard lock(mutex_);
  Slowest& slowest = by_power_[power_of(cost, by_power_.size())];
  const double each = seconds(took) / cost;
  if (each > slowest.seconds_per_cost) slowest = {each, flops_of(c), seconds(took)};
  note_overtime(cost, took);
}

void Pace::note_overtime(double cost, nanoseconds took) {
  if (cost <= small_cost || took <= ordinary_) return;
  overtime_ += took - ordinary_;
  cheapest_ = std::min(cheapest_, cost);
}

std::string Pace::speed_text(double cost) const {
  const Slowest* const known = nearest(cost);
  if (known == nullptr) return "it has answered no call before";
  return fmt::format("it took {:.2g} s for {:.2g} flops before, {:.2g} flops a second", known->seconds, known->flops,
                     known->flops / known->seconds);
}

std::string Pace::late(const Case& c, nanoseconds took) {
  const double cost = cost_of(c);
  if (given_ || cost <= small_cost) return {};
  const std::lock_guard lock(mutex_);
  ++late_calls_;
  note_overtime(cost, took);
  cheapest_ = std::min(cheapest_, cost);
  return fmt::format("for {:.2g} flops, and {}: it may be slow or hang; {}", flops_of(c), speed_text(cost), remedy);
}

std::string Pace::why_not_asked(const Case& c) const {
  if (given_) return {};
  const double cost = cost_of(c);
  if (cost <= small_cost) return {};
  const std::lock_guard lock(mutex_);
  if ((late_calls_ < most_late_calls && overtime_ <= most_overtime * ordinary_) || cost < cheapest_) return {};
  return fmt::format("{:.2g} flops were not asked for, as cases like it were late or took minutes, and {}; {}",
                     flops_of(c), speed_text(cost), remedy);
}

}  // namespace attest
