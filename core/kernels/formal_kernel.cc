// The generic core on expressions, as a kernel that properties run on.
#include <optional>

#include "core/kernel/formal.h"
#include "core/kernels/core_problem.h"
#include "core/problem/kv_cache.h"

namespace attest {
namespace {

class CoreOnExpressions final : public Kernel {
 public:
  CoreOnExpressions() {
    manifest_.name = id_;
    manifest_.version = "1";
    manifest_.dtypes = {DType::f64};
    manifest_.arithmetic.usual.emplace(DType::f64, Arithmetic{});
    manifest_.claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant,
                        Claim::ignores_dead_values};
    manifest_.fully_masked_row = core_fully_masked_row;
    manifest_.multihead = true;
    manifest_.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
    manifest_.causal = {Causal::top_left, Causal::bottom_right};
    manifest_.variants = every_variant();
    manifest_.grouped_query = true;
    manifest_.strides = true;
  }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<CoreOnExpressions>(); }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool) override try {
    if (output) throw NotTreated("looks at outputs rounded to a dtype, and a proof has none");
    const Shape shape = c.out_shape();
    if (c.operation == Operation::multihead)
      return {CallStatus::ok, {}, numbers_of(multihead_outputs<Expression>(c.multihead_problem()), shape), {}};
    std::vector<Matrix<Expression>> out, lse;
    const Case laid_out = laid_out_in_cache(c);
    for (const AttentionResult<Expression>& page : attention_results<Expression>(laid_out.problem())) {
      out.push_back(page.out);
      lse.emplace_back(page.lse);
    }
    return {CallStatus::ok, {}, numbers_of(out, shape), numbers_of(lse, {shape[0], shape[1], shape[2]})};
  } catch (const UsageError& error) {
    return {CallStatus::rejected, error.what(), {}, {}};
  }

 private:
  std::string id_ = "core:expression";
  Manifest manifest_;
};

}  // namespace

std::unique_ptr<Kernel> formal_kernel() {
  return std::make_unique<CoreOnExpressions>();
}

}  // namespace attest
