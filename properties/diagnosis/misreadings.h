// What a wrong kernel may have taken a problem for: another mask, other heads, other keys. A kernel whose answers are
// right answers to such another problem is told so in words.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// Of cases of attention that the kernel answers wrong, what it computes instead, in words that follow "it computes as
/// if": "head h read key-value head h mod KV". A reading is found when no answer that is not the case's own lies beyond
/// the bound of that other problem, two are judged by it, or all, and half of these lie several times beyond their own
/// bound. Several: nothing tells them apart. Where no other problem is found, other problems of single rows are tried
/// (row_misreadings.h), and then what becomes of numbers (misread_numbers.h). Empty where no reading that is tried here
/// is that of all, where no case is answered wrong, and where the kernel gives no numbers. Declared arithmetic is
/// believed. Each case is put to the kernel once or twice.
[[nodiscard]] std::vector<std::string> misreadings_of(Kernel& kernel, std::span<const Case> cases);

}  // namespace attest
