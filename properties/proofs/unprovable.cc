#include "properties/proofs/unprovable.h"

#include <algorithm>
#include <utility>

namespace attest {

std::string_view why_unprovable(std::string_view property) {
  static constexpr std::pair<std::string_view, std::string_view> rows[] = {
      {"attention.expectation-sampling", "is statistical: a test of draws at a stated confidence"},
      {"attention.score-variance", "is about numbers: the variance over a design that is written out"},
      {"attention.strides", "is about where a kernel reads its inputs in memory"},
      {"attention.repeatable", "is about bits: two calls that must give the same ones"},
      {"attention.finite", "is about overflow, which real numbers have none of"},
      {"attention.oracle", "is about rounding: the error of an output against its bound"},
      {"attention.promised", "is about rounding: the error of an output against the bound of a promise"},
      {"attention.any-length", "is about rounding: the error at many lengths against its bound"},
      {"masked.fixed-length", "is about what is refused: a mask that fits no other length"},
      {"masked.fully-masked-row", "is about the declared answer where the documents define none"},
      {"window.empty-row", "is about the declared answer where the documents define none"},
      {"window.leading-blocks", "is about rounding: the error of an output against its bound"},
      {"chunk.empty-row", "is about the declared answer where the documents define none"},
      {"chunk.leading-blocks", "is about rounding: the error of an output against its bound"},
      {"softcap.weights-bounded", "is about the size of tanh, which is any odd function to the algebra"},
      {"softcap.limit", "is about the size of tanh, which is any odd function to the algebra"},
      {"softcap.off", "is about what a call leaves behind for the next one"},
      {"softcap.monotone", "is about the order of tanh's values, which is any odd function to the algebra"},
      {"softcap.contraction", "is about the slope of tanh, which is any odd function to the algebra"},
      {"softcap.saturates", "is about the size of tanh, which is any odd function to the algebra"},
      {"alibi.slope-limit", "is about how small e^(Δ − m) is, and the algebra knows no sizes"},
      {"dropout.rate", "is about chance: what is drawn of a seed, and how probable that is"},
      {"dropout.same-mask", "is about what a kernel draws of a seed, in either of its passes"},
      {"varlen.tile-edges", "is about rounding: the error of an output against its bound"},
      {"paged.boundary", "is about rounding: the error of an output against its bound"},
      {"paged.read-only", "is about memory: what a call leaves as it was"},
      {"backward.oracle-dq", "is about rounding: the error of a gradient against its bound"},
      {"backward.oracle-dk", "is about rounding: the error of a gradient against its bound"},
      {"backward.oracle-dv", "is about rounding: the error of a gradient against its bound"},
      {"backward.oracle-dmask", "is about rounding: the error of a gradient against its bound"},
      {"backward.oracle-dsink", "is about rounding: the error of a gradient against its bound"},
      {"softcap.gradient-factor", "is about the slope of tanh, which is any odd function to the algebra"},
      {"backward.given", "is about rounding: the error of gradients against their bound"},
      {"backward.head-dims", "is about rounding: the error of gradients against their bound"},
      {"backward.finite", "is about overflow, which real numbers have none of"},
      {"backward.split-keys", "is about answers that a kernel is given, and the core makes its own"},
      {"backward.dq-dk-need-delta", "is about answers that a kernel is given, and the core makes its own"},
      {"sink.given-lse", "is about answers that a kernel is given, and the core makes its own"},
      {"softcap.gradient-vanishes", "is about the size of tanh, which is any odd function to the algebra"},
      {"backward.directional", "is about rounding: gradients against a derivative in enclosures"},
      {"backward.forward-agrees", "is about a way of a kernel's own, and the core has one forward pass"},
      {"backward.repeatable", "is about bits: two calls that must give the same ones"},
      {"backward.subset", "is about what a kernel is asked for, and the core answers with all"},
      {"backward.strides", "is about where a kernel reads its inputs in memory"},
      {"self.parameter-free", "is about printed numbers: the notebook's own"},
      {"position.length-limit", "is about what is refused: more tokens than the table has rows"},
      {"masked.multihead-fully-masked-row", "is about the declared answer where the documents define none"},
      {"multihead.finite", "is about overflow, which real numbers have none of"},
      {"multihead.strides", "is about where a kernel reads its inputs in memory"},
      {"multihead.oracle", "is about rounding: the error of an output against its bound"},
      {"multihead.promised", "is about rounding: the error of an output against the bound of a promise"},
      {"multihead.returned-weights", "is about a second answer, which is held against its error bound"},
      {"multihead.torch-case", "is about rounding: the error of PyTorch's special case against its bound"},
      {"layout.index-fusion", "is about indices, which are integers: checked one by one"},
  };
  const auto* const found = std::ranges::find(rows, property, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(rows) ? std::string_view() : found->second;
}

}  // namespace attest
