// Kernels that are right but for windows.
#include <functional>
#include <limits>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

/// Another window in the place of the one asked for, where there is one.
Spoilt::Fault window_asked(std::function<void(Case&)> change) {
  return variant_asked(window_variant, std::move(change));
}
void forget(Case& c) {
  drop_variant(c, window_variant.name);
}

}  // namespace

std::vector<WrongKernel> mistaken_windows() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"ignores windows", window_asked(forget)},
      {"ignores left ends", window_asked([](Case& c) { c.window_left = -1; })},
      {"ignores right ends", window_asked([](Case& c) { c.window_right = -1; })},
      {"counts the query among the keys on the left",
       window_asked([](Case& c) { c.window_left = c.window_left > 0 ? c.window_left - 1 : c.window_left; })},
      {"sees a key more on the left", window_asked([](Case& c) { c.window_left += c.window_left >= 0 ? 1 : 0; })},
      {"sees a key less on the right",
       window_asked([](Case& c) { c.window_right = c.window_right > 0 ? c.window_right - 1 : c.window_right; })},
      {"sees a key more on the right", window_asked([](Case& c) { c.window_right += c.window_right >= 0 ? 1 : 0; })},
      {"exchanges the ends of windows", window_asked([](Case& c) { std::swap(c.window_left, c.window_right); })},
      {"aligns windows at the top left", window_asked([](Case& c) {
         if (c.causal == Causal::none) c.alignment = Causal::top_left;
       })},
      {"aligns windows at the bottom right", window_asked([](Case& c) {
         if (c.causal == Causal::none) c.alignment = Causal::bottom_right;
       })},
      {"counts bottom-right windows one key further", window_asked([](Case& c) {
         if (c.causal != Causal::none || c.alignment != Causal::bottom_right) return;
         if (c.window_left > 0) --c.window_left;
         if (c.window_right >= 0) ++c.window_right;
       })},
      {"ignores windows beside a mask", window_asked([](Case& c) {
         if (c.mask().present()) forget(c);
       })},
      {"ignores windows beside a causal form", window_asked([](Case& c) {
         if (c.causal != Causal::none) forget(c);
       })},
      {"ignores a causal form beside a window", window_asked([](Case& c) {
         const Causal alignment = c.causal;
         c.causal = Causal::none;
         if (alignment != Causal::none) c.alignment = alignment;
       })},
      {"ignores a mask beside a window", window_asked([](Case& c) { c[Slot::mask] = Tensor(); })},
      {"ignores windows for one query", window_asked([](Case& c) {
         if (queries_of(c) == 1) forget(c);
       })},
      {"takes windows for wide that are not", window_asked([](Case& c) {
         if (c.window_left >= keys_of(c) - 2) c.window_left = -1;
         if (c.window_right >= queries_of(c) - 2) c.window_right = -1;
       })},
      {"takes windows of as many keys for wide", window_asked([](Case& c) {
         if (c.window_right >= keys_of(c)) c.window_right = -1;
       })},
      {"takes a window of one end for one of both", window_asked([](Case& c) {
         if (c.window_left < 0) c.window_left = keys_of(c) - 1;
         if (c.window_right < 0) c.window_right = keys_of(c) - 1;
         if (c.window_left < 0) c.window_left = 0, c.window_right = 0;
       })},
      {"weighs keys outside of windows a little",
       variant_answered(
           window_variant, [](double right, double without) { return right + 0.01 * (without - right); },
           right_answer)},
      {"counts keys outside of windows in lse",
       variant_answered(window_variant, right_answer, [](double, double all) { return all; })},
      {"lowers lse by how wide windows are",
       lse_lowered(window_variant, [](const Case& c) { return static_cast<double>(c.window_left + c.window_right); })},
      {"lowers lse by 2 under windows of more than a key",
       lse_lowered(window_variant, [](const Case& c) { return c.window_left + c.window_right > 0 ? 2.0 : 0.0; })},
      {"answers 0 outside of the keys", rows_answered(window_variant, sees_nothing, [](double) { return 0.0; })},
      {"answers 1 outside of the keys", rows_answered(window_variant, sees_nothing, [](double) { return 1.0; })},
      {"answers NaN behind a hidden block",
       rows_answered(window_variant, begins_behind_a_block, [](double) { return nan; })},
      {"answers half behind a hidden block",
       rows_answered(window_variant, begins_behind_a_block, [](double old) { return old / 2; })},
      {"answers otherwise beside rows without a key", risen_beside_empty_rows(window_variant)},
      {"adds what keys outside of windows hold", with_a_trace_of_the_ends(window_variant)},
  };
}

}  // namespace attest
