#include "properties/diagnosis/arithmetic/probe_arithmetic.h"

#include <nlohmann/json.hpp>

#include "properties/diagnosis/arithmetic/arithmetic_questions.h"
#include "properties/diagnosis/arithmetic/probe_ends.h"
#include "properties/diagnosis/arithmetic/probe_maximum.h"
#include "properties/diagnosis/arithmetic/probe_sums.h"
#include "properties/diagnosis/arithmetic/probe_tanh.h"
#include "properties/diagnosis/arithmetic/probe_weights.h"

namespace attest {

ProbedArithmetic probe_arithmetic(Kernel& kernel, DType dtype) {
  ProbedArithmetic probed{.dtype = dtype, .findings = {}, .declare = kernel.manifest().arithmetic.usual_for(dtype)};
  ArithmeticQuestions ask(kernel, dtype);
  if (!ask.why_not().empty()) {
    probed.findings.push_back(
        {.question = "arithmetic", .declared = "", .found = "not asked: " + ask.why_not(), .evidence = {}});
    return probed;
  }
  probed.declared_nothing = false;
  ask_sums(ask, probed);
  const SeenWeights seen = ask_weights(ask, probed);
  if (seen.answered) ask_maximum(ask, probed, seen);
  if (seen.answered) ask_tanh(ask, probed, seen);
  ask_ends(ask, probed);
  return probed;
}

std::string declaration_of(std::span<const ProbedArithmetic> probed) {
  Manifest manifest;
  for (const ProbedArithmetic& one : probed) {
    if (one.declared_nothing) continue;
    manifest.dtypes.push_back(one.dtype);
    manifest.arithmetic.usual[one.dtype] = one.declare;
  }
  if (manifest.dtypes.empty()) return {};
  return nlohmann::ordered_json::parse(to_json(manifest))["arithmetic"].dump(2);
}

}  // namespace attest
