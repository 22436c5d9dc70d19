// Which arithmetic a kernel computes in, found by asking: formats and order of its sums, its scores and weights, exp
// and tanh, blocks, and what becomes of the smallest numbers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel_under_test.h"

namespace attest {

/// What was found on one question.
struct ArithmeticFinding {
  std::string question;      ///< "sums over keys"
  std::string declared;      ///< by the manifest in effect, stated or not
  std::string found;         ///< "f32, rounded to nearest"; "not told apart: …"; "not asked: …"
  std::string evidence;      ///< what was asked, what came out and which readings it contradicts, in sentences
  bool contradicts = false;  ///< the kernel does what is further from the exact answer than it declares
};

struct ProbedArithmetic {
  DType dtype = DType::f32;
  std::vector<ArithmeticFinding> findings;
  /// What the manifest may say: nothing in it is tighter than what the answers show. What was not asked is as the
  /// manifest has it, and where several readings remain it is the loosest of them.
  Arithmetic declare;
  bool declared_nothing = true;  ///< nothing could be asked
  bool readable = true;          ///< both sums came out as sums of some format
};

/// Asks the attention entry, within the limits of the manifest. What is found of a few keys and head dimensions is
/// asked again of many; where they differ the finding says what was seen where, and what is declared holds for both.
[[nodiscard]] ProbedArithmetic probe_arithmetic(Kernel& kernel, DType dtype);

/// The object to put into the manifest: {"f32": {…}}, every key stated, of those that could be asked. Empty where none
/// could.
[[nodiscard]] std::string declaration_of(std::span<const ProbedArithmetic> probed);

}  // namespace attest
