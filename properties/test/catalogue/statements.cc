#include "properties/test/catalogue/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/support/names.h"
#include "core/test/places.h"
#include "properties/arrangement/arguments.h"
#include "properties/test/catalogue/wrong_kernels.h"

namespace attest {
namespace {

constexpr std::int64_t cases = 60;

std::string line(std::string_view name, const std::vector<std::string>& words) {
  std::string text = fmt::format("  {:<7}{}", name, fmt::join(words, " "));
  while (text.ends_with(' ')) text.pop_back();
  return text + '\n';
}

std::string_view word_of(Need need) {
  return need == Need::needed ? "needed" : need == Need::spare ? "spare" : "defining";
}

std::string asks(const Property& p) {
  std::vector<std::string> words;
  for (const Stated& stated : p.hypotheses)
    words.push_back(fmt::format("{}:{}", stated.hypothesis->name, word_of(stated.need)));
  return line("asks", words);
}

/// Ranges of the extents and sets of everything else, of the cases as they are drawn.
std::string draws(const Property& p) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> ranges;
  std::set<std::string> forms;
  std::vector<std::string> order;
  const auto range = [&](const std::string& name, std::int64_t x) {
    if (!ranges.contains(name)) ranges[name] = {x, x}, order.push_back(name);
    auto& [low, high] = ranges[name];
    low = std::min(low, x), high = std::max(high, x);
  };
  for (std::int64_t k = 0; k < 4 * cases; ++k) {
    const Case c = generate(p, DType::f32, /*run_seed=*/1, k);
    const Extents e = extents_of(c);
    range("B", e.batch), range("H", e.heads);
    if (c.operation == Operation::attention) range("KV", e.kv_heads);
    range("M", e.queries), range("N", e.keys), range("N-M", e.keys - e.queries), range("dk", e.dk), range("dv", e.dv);
    if (c.attention_chunk > 0) range("chunks", (e.keys + c.attention_chunk - 1) / c.attention_chunk);
    if (c.operation == Operation::multihead)
      range("c_q", e.c_q), range("c_k", e.c_k), range("c_v", e.c_v), range("d_o", e.d_o);
    const Tensor& mask = c.mask();
    forms.insert(fmt::format("mask:{}", !mask.present()                  ? "none"
                                        : mask.dtype() == DType::boolean ? "boolean"
                                                                         : "additive"));
    if (mask.present()) forms.insert(fmt::format("mask-for-{}-heads", mask.shape()[1] == 1 ? "all" : "each"));
    forms.insert(fmt::format("causal:{}", name_of(c.causal)));
    forms.insert(std::string(name_of(c.mask_convention)));
    forms.insert(is_inverse_root(c.scale, e.dk) ? "scale:root" : c.scale == 1 ? "scale:1" : "scale:any");
    for (const Slot slot : {Slot::b_q, Slot::b_o, Slot::w_o, Slot::bias_k})
      if (c.operation == Operation::multihead)
        forms.insert(fmt::format("{}{}", c[slot].present() ? "" : "no-", name_of(slot)));
    if (c.operation == Operation::multihead) forms.insert(c.q() == c.k() && c.q() == c.v() ? "one-X" : "three-inputs");
    if (c.provenance.strides.has_value()) forms.insert("strides");
    if (c.window_left >= 0) forms.insert("window:left");
    if (c.window_right >= 0) forms.insert("window:right");
    if (c.alignment != Causal::none)
      forms.insert(fmt::format("{}:{}", c.attention_chunk > 0 ? "chunk" : "window", name_of(c.alignment)));
    if (c[Slot::q_lengths].present()) forms.insert("lengths:queries");
    if (c[Slot::kv_lengths].present()) forms.insert("lengths:keys");
    for (const Slot slot : {Slot::left_pad, Slot::page_table, Slot::page_table_v, Slot::cache_index})
      if (c[slot].present()) forms.insert(std::string(name_of(slot)));
  }
  std::vector<std::string> words;
  words.reserve(order.size() + forms.size());
  for (const std::string& name : order)
    words.push_back(fmt::format("{}:{}..{}", name, ranges[name].first, ranges[name].second));
  words.insert(words.end(), forms.begin(), forms.end());
  return line("draws", words);
}

/// Of an axis of some length the indices that are in the set: "" all, else "f" the first, "m" some between, "l" the
/// last.
std::string places(const std::set<std::int64_t>& indices, std::int64_t extent) {
  if (std::cmp_equal(indices.size(), extent)) return "";
  std::string text;
  for (const std::int64_t i : indices) {
    const char place = i == 0 ? 'f' : i == extent - 1 ? 'l' : 'm';
    if (text.find(place) == std::string::npos) text += place;
  }
  return text;
}

/// Where two tensors of one shape differ: "[pages rows columns]", as `places` has each; "" everywhere.
std::string where(const Tensor& before, const Tensor& after) {
  const Shape& shape = before.shape();
  if (shape.rank() < 2) return "";
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  std::set<std::int64_t> page, row, column;
  for (std::int64_t e = 0; e < before.elements(); ++e) {
    if (before[e] == after[e] || (std::isnan(before[e]) && std::isnan(after[e]))) continue;
    page.insert(e / columns / rows), row.insert(e / columns % rows), column.insert(e % columns);
  }
  std::string text;
  const auto add = [&](const char* name, const std::string& in) {
    if (!in.empty()) text += fmt::format("{}{}:{}", text.empty() ? "[" : " ", name, in);
  };
  add("page", places(page, before.elements() / columns / rows));
  add("row", places(row, rows));
  // Which columns change depends on what was drawn, but for those of a mask, which are keys.
  if (before.dtype() == DType::boolean || before.shape().rank() == 4) add("column", places(column, columns));
  return text.empty() ? text : text + "]";
}

/// "b" boolean or "a" additive, for one head or each.
std::string form_of_mask(const Tensor& mask) {
  return fmt::format("{}{}{}", mask.dtype() == DType::boolean ? "b" : "a", mask.shape()[0] == 1 ? "1" : "B",
                     mask.shape()[1] == 1 ? "1" : "H");
}

/// By how many an axis is longer: "+1", "+" more, "-1", "-" more, "" as long.
std::string longer(std::int64_t before, std::int64_t after) {
  const std::int64_t by = after - before;
  return by == 0 ? "" : std::abs(by) == 1 ? (by > 0 ? "+1" : "-1") : by > 0 ? "+" : "-";
}

/// How a tensor differs from that of the drawn case: "" not, "+" it is there, "-" it is gone, "#" it has another shape
/// (and by how much the last two axes differ), "~" its numbers stand in another order, "!" it has other numbers.
std::string difference(Slot slot, const Tensor& before, const Tensor& after) {
  const std::string form = slot == Slot::mask && after.present() ? form_of_mask(after) : "";
  if (before.present() != after.present()) return (after.present() ? "+" : "-") + form;
  if (!before.present()) return "";
  if (before.shape() != after.shape() || before.dtype() != after.dtype()) {
    const int rank = before.shape().rank();
    if (rank < 2 || after.shape().rank() != rank) return "#" + form;
    return fmt::format("#{}{}{}", form, longer(before.shape()[rank - 2], after.shape()[rank - 2]),
                       longer(before.shape()[rank - 1], after.shape()[rank - 1]));
  }
  if (std::ranges::equal(before.bytes(), after.bytes())) return "";
  std::vector<double> a = before.to_doubles(), b = after.to_doubles();
  if (std::ranges::any_of(b, [](double x) { return std::isnan(x); })) return "NaN" + where(before, after);
  std::ranges::sort(a), std::ranges::sort(b);
  return a == b ? "~" : "!" + where(before, after);
}

/// A call beside the drawn case.
std::string difference(const Case& drawn, const Case& call) {
  std::string text;
  for (int s = 0; s < slot_count; ++s) {
    const auto slot = static_cast<Slot>(s);
    if (const std::string how = difference(slot, drawn[slot], call[slot]); !how.empty())
      text += fmt::format("{}{}{}", text.empty() ? "" : ",", name_of(slot), how);
  }
  const auto add = [&](bool differs, std::string_view what) {
    if (differs) text += fmt::format("{}{}", text.empty() ? "" : ",", what);
  };
  // "-" where it is neutral now.
  for_each_scalar(call.operation, [&](const auto& field) {
    const bool gone = field.neutral == call.*field.member && !field.is_original();
    add(drawn.*field.member != call.*field.member, fmt::format("{}{}", gone ? "-" : "", field.name));
  });
  add(drawn.pool != call.pool, "pool");
  add(drawn.append != call.append, call.append == 0 ? "-append" : "append");
  add(drawn.provenance.unused != call.provenance.unused, "unused:" + call.provenance.unused.value_or("as-drawn"));
  add(drawn.provenance.strides.has_value() != call.provenance.strides.has_value(), "strides");
  return text.empty() ? "as-drawn" : text;
}

/// Which arguments a check chooses, how many calls it makes, and in what these differ from the drawn case.
std::string calls(const Property& p) {
  std::size_t least = 1000, most = 0;
  std::map<std::string, int> seen;
  std::set<std::string> chosen;
  for (std::int64_t k = 0; k < cases; ++k) {
    const Case drawn = generate(p, DType::f64, /*run_seed=*/1, k);
    std::size_t made = 0;
    Spoilt spy(
        [&](Kernel& kernel, const Case& c, DType output, bool want_lse) {
          ++made, ++seen[difference(drawn, c)];
          return kernel.run(c, output, want_lse);
        },
        [&](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
          ++made, ++seen["backward " + difference(drawn, c)];
          return kernel.backward(c, call, output);
        });
    const ArgumentsAsked arguments;
    static_cast<void>(check_case(p, spy, drawn));
    for (const std::string& name : arguments.names()) {
      const std::size_t digit = name.find('/') == std::string::npos ? name.find_first_of("0123456789") : name.size();
      chosen.insert(name.substr(0, digit));
    }
    least = std::min(least, made), most = std::max(most, made);
  }
  std::vector<std::string> words{fmt::format("{}..{}", least, most)};
  for (const auto& [text, times] : seen) words.push_back(fmt::format("{}*{{{}}}", times, text));
  return line("chooses", {chosen.begin(), chosen.end()}) + line("calls", words);
}

/// Of violations of a bound those count that are no matter of rounding, so that the record is the same with another
/// compiler's exp.
bool goes_red(const Property& p, Kernel& kernel, const Case& c) {
  const Verdict v = check_case(p, kernel, c);
  return v.outcome == Outcome::violated && (v.violation != Violation::bound || v.error == 0 || v.error > 1e-9);
}

struct Called {
  Case problem;
  std::optional<BackwardCall> backward;  ///< none: a forward pass
  DType output;
  bool want_lse;  ///< of a forward pass
  Reply reply;
};

/// A drawn case, what its check has called the right kernel with and been answered.
struct Conversation {
  Case drawn;
  std::vector<Called> calls;
  std::set<std::string_view> functions;  ///< of the core, that the check has asked too
};

std::vector<Conversation> conversations(const Property& p) {
  std::vector<Conversation> all;
  for (std::int64_t k = 0; k < cases; ++k) {
    Conversation& one = all.emplace_back(generate(p, DType::f64, /*run_seed=*/1, k));
    Spoilt right(
        [&](Kernel& kernel, const Case& c, DType output, bool want_lse) {
          return one.calls.emplace_back(c, std::nullopt, output, want_lse, kernel.run(c, output, want_lse)).reply;
        },
        [&](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
          return one.calls.emplace_back(c, call, output, false, kernel.backward(c, call, output)).reply;
        });
    static_cast<void>(check_case(p, right, one.drawn));
    one.functions = functions_asked([&](Kernel& kernel) { static_cast<void>(check_case(p, kernel, one.drawn)); });
  }
  return all;
}

/// A right kernel that does not compute again what it has answered in a conversation.
class Remembering : public ForwardingKernel {
 public:
  Remembering(Kernel& right, const Conversation& one) : ForwardingKernel(right), one_(&one) {}
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    const auto found = std::ranges::find_if(one_->calls, [&](const Called& call) {
      return !call.backward && call.output == output && call.want_lse == want_lse && call.problem == c;
    });
    return found != one_->calls.end() ? found->reply : ForwardingKernel::run(c, output, want_lse);
  }

 private:
  const Conversation* one_;
};

bool answers_alike(Kernel& kernel, const Conversation& as_right) {
  return std::ranges::all_of(as_right.calls, [&](const Called& call) {
    const Reply now = call.backward ? kernel.backward(call.problem, *call.backward, call.output)
                                    : kernel.run(call.problem, call.output, call.want_lse);
    const Reply& right = call.reply;
    return now.status == right.status && now.out == right.out && now.lse == right.lse &&
           now.gradients == right.gradients && now.own_lse == right.own_lse;
  });
}

/// A check goes by nothing but the answers, and a right kernel is red in no case (change_of): one that answers as the
/// right one has answered need not be judged, which takes much longer than to ask it.
bool goes_red_for(const WrongKernel& wrong, const Property& p, const std::vector<Conversation>& with_right) {
  if (wrong.has_memory) {
    Spoilt kernel(wrong.fault, wrong.backward);
    return std::ranges::any_of(with_right, [&](const Conversation& one) { return goes_red(p, kernel, one.drawn); });
  }
  const auto right = registered("core:double");
  return std::ranges::any_of(with_right, [&](const Conversation& one) {
    Spoilt kernel(wrong.fault, wrong.backward, std::make_unique<Remembering>(*right, one));
    return !answers_alike(kernel, one) && goes_red(p, kernel, one.drawn);
  });
}
bool goes_red_for(std::string_view broken_function, const Property& p, const std::vector<Conversation>& with_right) {
  const auto kernel = with_broken_function(broken_function);
  const std::string_view function = broken_function.substr(0, broken_function.find('-'));
  return std::ranges::any_of(with_right, [&](const Conversation& one) {
    return one.functions.contains(function) && goes_red(p, *kernel, one.drawn);
  });
}
bool goes_red_for(const WrongWide& wrong, const Property& p, const std::vector<Conversation>& with_right) {
  const auto kernel = with_wide_fault(wrong);
  return std::ranges::any_of(with_right, [&](const Conversation& one) { return goes_red(p, *kernel, one.drawn); });
}

/// Empty, or the first case that a right kernel is called violated for.
std::string violates(const Property& p, Kernel& right) {
  const DType dtype = right.manifest().dtypes.front();
  for (std::int64_t k = 0; k < cases; ++k) {
    const Verdict v = check_case(p, right, project(generate(p, dtype, /*run_seed=*/1, k), right.manifest()));
    if (v.outcome == Outcome::violated) return fmt::format("{} violates case {}: {}", right.id(), k, v.reason);
  }
  return {};
}

std::string sees(const Property& p) {
  std::map<std::string, std::vector<std::string>> groups;
  const std::vector<Conversation> with_right = conversations(p);
  for (const WrongKernel& wrong : wrong_kernels()) {
    // One whose forward pass is right is no matter to a row about that.
    if (wrong.backward && p.backward == Backward::none) continue;
    if (!goes_red_for(wrong, p, with_right)) continue;
    const std::size_t space = wrong.name.find(' ');
    const std::string first = wrong.name.substr(0, space);
    if (first == "looks-at" || first == "wrong-at" || first == "lse" || first.starts_with("gradients-")) {
      groups[first].push_back(wrong.name.substr(space + 1));
    } else {
      groups["mistakes"].push_back("\"" + wrong.name + "\"");
    }
  }
  for (const std::string_view name : broken_functions())
    if (goes_red_for(name, p, with_right)) groups["core"].emplace_back(name);
  for (const WrongWide& wrong : wrong_wide_kernels())
    if (goes_red_for(wrong, p, with_right)) groups["wide"].push_back(wrong.name);
  std::string text;
  for (const std::string group :
       {"looks-at", "wrong-at", "lse", "core", "wide", "gradients-look-at", "gradients-wrong-at", "mistakes"})
    if (p.backward != Backward::none || !group.starts_with("gradients-"))
      text += line("sees", {fmt::format("{}: {}", group, fmt::join(groups[group], group[0] == 'm' ? ", " : " "))});
  return text;
}

}  // namespace

std::string described(const Property& p) {
  return fmt::format("{}\n{}{}{}{}", p.name, asks(p), draws(p), calls(p), sees(p));
}

const std::map<std::string, std::string>& recorded() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> rows;
    std::ifstream in(source_folder() + "/properties/test/catalogue/statements.txt");
    std::string text, name;
    while (std::getline(in, text)) {
      if (text.empty() || text.starts_with('#')) continue;
      if (!text.starts_with(' ')) name = text;
      rows[name] += text + "\n";
    }
    return rows;
  }();
  return all;
}

std::string change_of(const Property& p) {
  for (const char* const id : {"core:double", "core:arb", "builtin:flash", "builtin:lazy"}) {
    const auto right = registered(id);
    if (std::string found = violates(p, *right); !found.empty()) return found;
  }
  const std::string now = described(p);
  const auto found = recorded().find(std::string(p.name));
  if (found == recorded().end()) return "statements.txt has no paragraph for it:\n" + now;
  if (found->second == now) return {};
  std::istringstream before(found->second), after(now);
  std::string was, is, text;
  while (std::getline(before, was) && std::getline(after, is))
    if (was != is) text += fmt::format("was: {}\nis:  {}\n", was, is);
  return text;
}

}  // namespace attest
