#include "core/proof/expression.h"

namespace attest {
namespace {

thread_local ExpressionScope* innermost = nullptr;

std::uint64_t hash_of(Step step, std::uint32_t left, std::uint32_t right) {
  // Multiplication by odd constants and a final mix (Steele, Lea and Flood 2014).
  std::uint64_t h =
      (static_cast<std::uint64_t>(left) << 32U | right) + static_cast<std::uint64_t>(step) * 0x9e3779b97f4a7c15U;
  h = (h ^ (h >> 30U)) * 0xbf58476d1ce4e5b9U;
  h = (h ^ (h >> 27U)) * 0x94d049bb133111ebU;
  return h ^ (h >> 31U);
}

}  // namespace

ExpressionScope::ExpressionScope() : slots_(1024, 0), before_(innermost) {
  innermost = this;
}

ExpressionScope::~ExpressionScope() {
  innermost = before_;
}

ExpressionScope& ExpressionScope::current() {
  if (innermost == nullptr) throw ProofError("an expression needs a scope to be written down in");
  return *innermost;
}

Expression ExpressionScope::input(const std::string& name, bool positive) {
  names_.push_back(name);
  return {ProofKind::number, made(Step::input, positive, static_cast<std::uint32_t>(names_.size() - 1))};
}

std::uint32_t ExpressionScope::made(double constant) {
  const auto known = constant_nodes_.find(constant);
  if (known != constant_nodes_.end()) return known->second;
  constants_.push_back(constant);
  const std::uint32_t node = made(Step::constant, constant > 0, static_cast<std::uint32_t>(constants_.size() - 1));
  constant_nodes_.emplace(constant, node);
  return node;
}

std::uint32_t ExpressionScope::made(Step step, bool positive, std::uint32_t left, std::uint32_t right) {
  if (4 * (size_ + 1) > 3 * slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash_of(step, left, right) & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) {
      if (size_ % page_size == 0) pages_.push_back(std::make_unique<Page>());
      (*pages_.back())[size_ % page_size] = {.step = step, .positive = positive, .left = left, .right = right};
      slots_[slot] = static_cast<std::uint32_t>(++size_);
      return slots_[slot] - 1;
    }
    const ExpressionNode& node = (*this)[slots_[slot] - 1];
    if (node.step == step && node.left == left && node.right == right) return slots_[slot] - 1;
  }
}

void ExpressionScope::grow() {
  if (size_ >= std::size_t{1} << 31U) throw ProofTooLarge("a proof of more than 2^31 operations");
  const std::size_t slots = 2 * slots_.size();
  slots_ = {};  // Room for both at once would be the most that a large proof ever takes.
  slots_.assign(slots, 0);
  const std::size_t mask = slots - 1;
  for (std::uint32_t at = 0; at < size_; ++at) {
    const ExpressionNode& node = (*this)[at];
    std::size_t slot = hash_of(node.step, node.left, node.right) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = at + 1;
  }
}

std::uint32_t Expression::node() const {
  proof::require_defined(kind_);
  if (kind_ == ProofKind::minus_infinity) throw InfinityMisused("-inf is asked for its formula");
  return node_;
}

Expression operator+(const Expression& a, const Expression& b) {
  const ProofKind kind = proof::sum(a.kind_, b.kind_);
  if (kind != ProofKind::number) return {kind, 0};
  ExpressionScope& scope = ExpressionScope::current();
  return {kind, scope.made(Step::sum, scope[a.node_].positive && scope[b.node_].positive, a.node_, b.node_)};
}

Expression operator-(const Expression& a, const Expression& b) {
  const ProofKind kind = proof::difference(a.kind_, b.kind_);
  if (kind != ProofKind::number) return {kind, 0};
  return {kind, ExpressionScope::current().made(Step::difference, false, a.node_, b.node_)};
}

Expression operator*(const Expression& a, const Expression& b) {
  ExpressionScope& scope = ExpressionScope::current();
  const bool left = a.kind_ == ProofKind::number && scope[a.node_].positive;
  const bool right = b.kind_ == ProofKind::number && scope[b.node_].positive;
  const ProofKind kind = proof::product(a.kind_, b.kind_, left, right);
  if (kind != ProofKind::number) return {kind, 0};
  return {kind, scope.made(Step::product, left && right, a.node_, b.node_)};
}

Expression operator/(const Expression& a, const Expression& b) {
  const ProofKind kind = proof::quotient(a.kind_, b.kind_);
  ExpressionScope& scope = ExpressionScope::current();
  return {kind, scope.made(Step::quotient, scope[a.node_].positive && scope[b.node_].positive, a.node_, b.node_)};
}

Expression ScalarTraits<Expression>::from_double(double value) {
  const ProofKind kind = proof::kind_of(value);
  // +0, so that 0 is one node.
  return {kind, kind == ProofKind::number ? ExpressionScope::current().made(value + 0.0) : 0};
}

Expression ScalarTraits<Expression>::exp(const Expression& x) {
  proof::require_defined(x.kind());
  if (is_minus_infinity(x)) return from_double(0);
  return {ProofKind::number, ExpressionScope::current().made(Step::exponential, true, x.node_)};
}

Expression ScalarTraits<Expression>::log(const Expression& x) {
  if (is_minus_infinity(x)) throw InfinityMisused("log(-inf)");
  return {ProofKind::number, ExpressionScope::current().made(Step::logarithm, false, x.node())};
}

Expression ScalarTraits<Expression>::tanh(const Expression& x) {
  ExpressionScope& scope = ExpressionScope::current();
  const std::uint32_t node = x.node();
  return {ProofKind::number, scope.made(Step::tangent, scope[node].positive, node)};
}

Expression ScalarTraits<Expression>::reference_point(std::span<const Expression> row) {
  ExpressionScope& scope = ExpressionScope::current();
  std::uint32_t list = 0;
  for (std::size_t at = 0; at < row.size(); ++at) {
    if (is_minus_infinity(row[at])) throw InfinityMisused("a reference point among hidden scores");
    const std::uint32_t node = row[at].node();
    list = scope.made(Step::list, false, at == 0 ? node : list, node);
  }
  return {ProofKind::number, scope.made(Step::reference, false, list)};
}

}  // namespace attest
