#include "properties/diagnosis/probe_multihead.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "properties/arrangement/arrange.h"

namespace attest {
namespace {

/// The matrix with column (or row) h·d + e taken from e·heads + h: heads read as interleaved.
Tensor interleaved(const Tensor& matrix, std::int64_t heads, bool rows) {
  const std::int64_t columns = matrix.shape()[1], axis = rows ? matrix.shape()[0] : columns, d = axis / heads;
  const auto source = [&](std::int64_t at) { return at % d * heads + at / d; };
  return mapped(matrix, [&](std::int64_t e, double) {
    const std::int64_t row = e / columns, column = e % columns;
    return rows ? matrix[source(row) * columns + column] : matrix[row * columns + source(column)];
  });
}

Tensor interleaved(const Tensor& bias, std::int64_t heads) {
  const std::int64_t d = bias.shape()[0] / heads;
  return mapped(bias, [&](std::int64_t e, double) { return bias[e % d * heads + e / d]; });
}

Case with_interleaved_heads(Case c) {
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v}) c[slot] = interleaved(c[slot], c.heads, /*rows=*/false);
  for (const Slot slot : {Slot::b_q, Slot::b_k, Slot::b_v}) c[slot] = interleaved(c[slot], c.heads);
  c[Slot::w_o] = interleaved(c[Slot::w_o], c.heads, /*rows=*/true);
  return c;
}

Case without(Case c, std::initializer_list<Slot> slots) {
  for (const Slot slot : slots) c[slot] = Tensor();
  return c;
}

/// What every kernel of the entry must do; it says so where it cannot.
void ask_of_all(ProbeQuestions& probe, std::string question, std::string_view right,
                const std::function<Question()>& ask) {
  const Settled settled = probe.settle(ask);
  probe.note(std::move(question), /*offered=*/true, settled, settled.is(right));
}

}  // namespace

void ask_multihead(ProbeQuestions& probe) {
  const auto plain = [&] { return probe.plain(probe.size()); };
  if (probe.size().heads > 1) {
    // Heads of one column lie alike either way.
    ProbeSize wide = probe.size();
    if (wide.dk == 1) wide.dk = wide.dv = 2;
    ask_of_all(probe, "columns of head h", "h·d, h·d + 1, …", [&] {
      const Case c = probe.plain(wide);
      return Question{c, {{"h·d, h·d + 1, …", c}, {"h, h + heads, …", with_interleaved_heads(c)}}};
    });
  }
  ask_of_all(probe, "projection biases", "added", [&] {
    const Case c = plain();
    return Question{c,
                    {{"added", c},
                     {"b_q, b_k and b_v ignored", without(c, {Slot::b_q, Slot::b_k, Slot::b_v})},
                     {"b_o ignored", without(c, {Slot::b_o})},
                     {"all ignored", without(c, {Slot::b_q, Slot::b_k, Slot::b_v, Slot::b_o})}}};
  });
  ask_of_all(probe, "no biases", "as stated", [&] {
    const Case c = without(plain(), {Slot::b_q, Slot::b_k, Slot::b_v, Slot::b_o});
    return Question{c, {{"as stated", c}}};
  });
  ask_of_all(probe, "no output projection", "none", [&] {
    const Case c = without(plain(), {Slot::w_o, Slot::b_o});
    return Question{c, {{"none", c}}};
  });
  ask_of_all(probe, "bias_k and bias_v", "a further key", [&] {
    Case c = plain();
    const Case row = plain();
    // Of the widths heads·dk and heads·dv.
    c[Slot::bias_k] = row[Slot::b_k];
    c[Slot::bias_v] = row[Slot::b_v];
    return Question{c, {{"a further key", c}, {"ignored", without(c, {Slot::bias_k, Slot::bias_v})}}};
  });
  const auto others = [&](std::int64_t more_columns) {
    Case c = plain();
    const Case other = plain();
    c[Slot::k] = other.v();
    c[Slot::v] = other.k();
    if (more_columns == 0) return c;
    const Case more = plain();
    const auto cycled_to = [&](const Tensor& numbers, const Shape& shape) {
      Tensor tensor(probe.dtype(), shape);
      std::int64_t from = 0;
      for (std::int64_t e = 0; e < tensor.elements(); ++e) {
        tensor.set(e, numbers[from++]);
        if (from == numbers.elements()) from = 0;
      }
      return tensor;
    };
    const Shape old = c.v().shape(), weights = c[Slot::w_v].shape();
    Tensor wide = cycled_to(more.k(), {old[0], old[1], old[2] + more_columns});
    Tensor taller = cycled_to(more[Slot::w_v], {weights[0] + more_columns, weights[1]});
    c[Slot::v] = std::move(wide);
    c[Slot::w_v] = std::move(taller);
    return c;
  };
  const bool any = !probe.manifest().self_attention_only;
  const auto ask_others = [&](std::string question, std::int64_t more_columns) {
    const Settled settled = probe.settle([&] {
      const Case c = others(more_columns);
      return Question{c, {{"yes", c}}};
    });
    probe.note(std::move(question), any, settled, settled.is("yes"));
    return settled.is("yes");
  };
  if (ask_others("keys and values of other tokens", 0)) probe.result().manifest.self_attention_only = false;
  ask_others("values of another width", 2);
}

}  // namespace attest
