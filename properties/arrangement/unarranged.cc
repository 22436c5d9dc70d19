#include "properties/arrangement/unarranged.h"

#include <limits>

#include "core/problem/sight.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/language/agree.h"
#include "properties/language/result.h"

namespace attest {
namespace {

std::int64_t row_of(const Case& c) {
  return argument(c, "i", queries_of(c));
}
std::int64_t key_of(const Case& c) {
  return argument(c, "s", keys_of(c));
}

/// The mask as one page for every batch entry and head, key s hidden in the first head from row i, or from all (i < 0).
Case hidden_in_first_head(const Case& c, std::int64_t i, std::int64_t s) {
  Case hidden = with_causal_written_out(c);
  const Tensor mask = hidden.mask();
  const Tensor full(mask.dtype(), {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
  hidden[Slot::mask] = mapped(full, [&](std::int64_t e, double) {
    const auto [b, h, row, key] = full.shape().index_of(e);
    if (h == 0 && key == s && (i < 0 || row == i)) return -std::numeric_limits<double>::infinity();
    return mask_entry(mask, b, h, row, key);
  });
  return hidden;
}

Tensor with_row_raised(const Tensor& tokens, std::int64_t s) {
  return with_row(tokens, s, [](std::int64_t, double old) { return old + 1; });
}

const Verdict one_head_only{.outcome = Outcome::skipped, .reason = "has one head, and the first is every one of them"};

}  // namespace

Verdict row_without_key(Kernel& kernel, const Case& c) {
  const Case as_is = with_causal_written_out(c);
  const std::int64_t i = row_of(c);
  return agree({run(kernel, as_is).queries({i}), run(kernel, without_key(as_is, key_of(c))).queries({i})},
               Match::bound);
}

Verdict rows_without_key(Kernel& kernel, const Case& c) {
  const Case as_is = with_causal_written_out(c);
  return agree({run(kernel, as_is), run(kernel, without_key(as_is, key_of(c)))}, Match::bound);
}

Verdict tokens_without_token(Kernel& kernel, const Case& c) {
  const Case as_is = with_causal_written_out(c);
  const std::int64_t s = key_of(c);
  return agree({run(kernel, as_is).without_query(s), run(kernel, without_query(without_key(as_is, s), s))},
               Match::bound);
}

Verdict row_hidden_in_one_head(Kernel& kernel, const Case& c) {
  if (c.heads < 2) return one_head_only;
  const std::int64_t i = row_of(c), s = key_of(c);
  const Case hidden = hidden_in_first_head(c, i, s);
  Case other = hidden;
  for (const Slot slot : {Slot::k, Slot::v}) other[slot] = with_row_raised(c[slot], s);
  return agree({run(kernel, other).queries({i}), run(kernel, hidden).queries({i})}, Match::bound);
}

Verdict rows_hidden_in_one_head(Kernel& kernel, const Case& c) {
  if (c.heads < 2) return one_head_only;
  const Case hidden = hidden_in_first_head(c, -1, key_of(c));
  return agree({run(kernel, hidden), run(kernel, without_key(hidden, key_of(c)))}, Match::bound);
}

Verdict own_token(Kernel& kernel, const Case& c) {
  const std::int64_t i = row_of(c);
  const Case hidden = hidden_key(c, From::row, i, i);
  const Case other = with_tokens(hidden, with_row_raised(c.q(), i));
  return agree({run(kernel, other).queries({i}), run(kernel, hidden).queries({i})}, Match::bound);
}

}  // namespace attest
