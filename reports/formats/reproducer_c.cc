#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/problem/score.h"
#include "reports/formats/reproducer_text.h"
#include "reports/page/element_text.h"

namespace attest {
namespace {

/// The type of an element in memory: C has none of 16 and 8 bits, so that those are their bit patterns.
std::string_view c_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "double";
    case DType::f32:
      return "float";
    case DType::f16:
    case DType::bf16:
      return "uint16_t";
    case DType::i8:
      return "int8_t";
    default:
      return "uint8_t";
  }
}

bool is_bits(DType dtype) {
  return dtype != DType::f64 && dtype != DType::f32 && dtype != DType::i8;
}

std::string c_number(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  return hex_number(value);
}

std::string c_element(const Tensor& tensor, std::int64_t element, bool by_bits) {
  if (tensor.dtype() == DType::boolean) return tensor[element] != 0 ? "1" : "0";
  if (by_bits) return fmt::format("{:#0{}x}", bits_of(tensor, element), 2 + 2 * size_of(tensor.dtype()));
  if (tensor.dtype() == DType::i8) return fmt::format("{:.0f}", tensor[element]);
  const std::string text = c_number(tensor[element]);
  return tensor.dtype() == DType::f32 && std::isfinite(tensor[element]) ? text + "f" : text;
}

/// The declarations of a tensor, and the line that fills it in where they do not.
struct Declared {
  std::string text, fill;
};

Declared c_tensor(const Tensor& tensor, std::string_view name) {
  const std::vector<EqualRun> runs = runs_of(tensor);
  // NAN is but one of the NaNs.
  const bool copies_bits = !is_bits(tensor.dtype()) && has_unusual_nan(tensor);
  const bool by_bits = is_bits(tensor.dtype()) || copies_bits;
  const std::string_view type = c_type(tensor.dtype());
  const std::string_view stored = !copies_bits ? type : tensor.dtype() == DType::f64 ? "uint64_t" : "uint32_t";
  std::vector<std::string> words;
  const auto listed = [&words](const std::string& head) {
    const std::string text = wrapped(words, "  ");
    return head.size() + text.size() < 110 && text.find('\n') == std::string::npos
               ? fmt::format("{}{{{}}};\n", head, text.substr(2))
               : fmt::format("{}{{\n{}}};\n", head, text);
  };
  if (is_told_by_runs(tensor, runs)) {
    for (const EqualRun& run : runs)
      words.push_back(fmt::format("{{{}, {}}}", run.count, c_element(tensor, run.first, by_bits)));
    return {
        listed(fmt::format("static const struct {{ int count; {} value; }} {}_runs[] = ", stored, name)) +
            fmt::format("static {} {}[{}];\n", type, name, tensor.elements()),
        fmt::format("  for (n = e = 0; n < {}; ++n)\n"
                    "    for (c = 0; c < {}_runs[n].count; ++c) memcpy(&{}[e++], &{}_runs[n].value, sizeof {}[0]);\n",
                    runs.size(), name, name, name, name)};
  }
  for (std::int64_t e = 0; e < tensor.elements(); ++e) words.push_back(c_element(tensor, e, by_bits));
  if (!copies_bits) return {listed(fmt::format("static const {} {}[{}] = ", type, name, tensor.elements())), ""};
  return {"// Bit patterns, because a NaN among them is not the usual one.\n" +
              listed(fmt::format("static const {} {}_bits[{}] = ", stored, name, tensor.elements())) +
              fmt::format("static {} {}[{}];\n", type, name, tensor.elements()),
          fmt::format("  memcpy({}, {}_bits, sizeof {});\n", name, name, name)};
}

/// A function that reads a bit pattern; empty: the format is one of C's.
std::string reader_of(DType dtype) {
  const auto with = [&](int fraction, int exponent, int bias) {
    const int ones = (1 << fraction) - 1, top = (1 << exponent) - 1;
    const std::string special = dtype == DType::f8_e4m3
                                    ? fmt::format("  if (e == {} && f == {}) return NAN;\n", top, ones)
                                    : fmt::format("  if (e == {}) return f ? NAN : s * INFINITY;\n", top);
    return fmt::format(
        "static long double from_{}(unsigned bits) {{\n"
        "  const int e = (int)(bits >> {} & {}), f = (int)(bits & {});\n"
        "  const long double s = bits >> {} ? -1 : 1;\n{}"
        "  return s * ldexpl(e ? {} + f : f, (e ? e : 1) - {});\n}}\n",
        name_of(dtype), fraction, top, ones, fraction + exponent, special, ones + 1, bias + fraction);
  };
  switch (dtype) {
    case DType::f16:
      return with(10, 5, 15);
    case DType::bf16:
      return with(7, 8, 127);
    case DType::f8_e4m3:
      return with(3, 4, 7);
    case DType::f8_e5m2:
      return with(2, 5, 15);
    default:
      return {};
  }
}

/// An element as a long double.
std::string read(DType dtype, std::string_view element) {
  return is_bits(dtype) ? fmt::format("from_{}({})", name_of(dtype), element) : fmt::format("(long double){}", element);
}

std::string readers(const Reproducer& r) {
  std::vector<DType> dtypes{r.output};
  for (const Slot slot : script_slots)
    if (r.problem[slot].present() && r.problem[slot].dtype() != DType::boolean)
      dtypes.push_back(r.problem[slot].dtype());
  std::ranges::sort(dtypes);
  dtypes.erase(std::ranges::unique(dtypes).begin(), dtypes.end());
  std::string text;
  for (const DType dtype : dtypes) text += reader_of(dtype);
  return text.empty() ? text : text + "\n";
}

std::string kernel_to_fill_in(const Reproducer& r) {
  std::string parameters, unused;
  for (const Slot slot : script_slots) {
    if (!r.problem[slot].present()) continue;
    parameters += fmt::format("const {}* {}, ", c_type(r.problem[slot].dtype()), name_of(slot));
    unused += fmt::format("(void){}, ", name_of(slot));
  }
  return fmt::format(
      "// Put your call here: fill out, row-major [B][H][M][dv] in {}, and return 1. 0: what Attest saw is judged.\n"
      "static int kernel({}{}* out) {{\n  {}(void)out;\n  return 0;\n}}\n\n",
      name_of(r.output), parameters, c_type(r.output), unused);
}

std::string filling(const std::string& lines) {
  if (lines.empty()) return {};
  const bool runs = lines.find("n = e = 0") != std::string::npos;
  return fmt::format("static void fill_in(void) {{\n{}{}}}\n\n", runs ? "  int n, e, c;\n" : "", lines);
}

/// " * (long double)k_descale[0]"; empty: the tensor has no factors.
std::string times_factor(const Problem& c, Slot tensor) {
  const std::string factor = factor_in_script(c, tensor, "/");
  return factor.empty() ? factor : " * " + read(DType::f32, factor);
}

std::string reference(const Problem& c) {
  const bool masked = c.mask().present(), adds = masked && c.mask().dtype() != DType::boolean;
  const std::string entry = masked ? fmt::format("mask[{}]", mask_index(c)) : "";
  std::string hiding;
  for (const std::string& condition : hiding_by_position(c))
    hiding += fmt::format("      if ({}) continue;\n", condition);
  if (masked && !adds) hiding += fmt::format("      if (!{}) continue;\n", entry);
  if (adds) hiding += fmt::format("      if ({} == -INFINITY) continue;\n", read(c.mask().dtype(), entry));
  const bool before = convention_of(c) == MaskConvention::pre_scale;
  const SlopeInScript slope = slope_in_script(c);
  const std::string bent = slope.slope.empty()
                               ? ""
                               : fmt::format(" - {} * fabsl((long double)({}))",
                                             read(c[Slot::alibi_slopes].dtype(), slope.slope), slope.away);
  const std::string added = (adds ? " + " + read(c.mask().dtype(), entry) : "") + bent;
  const std::string score = c.softcap > 0    ? fmt::format("softcap * tanhl(scale * s / softcap){}", added)
                            : adds && before ? fmt::format("scale * (s{})", added)
                                             : fmt::format("scale * s{}", added);
  const Tensor& sinks = c[Slot::sink];
  const std::string sink = read(sinks.present() ? sinks.dtype() : DType::f32, "sink[h]");
  const std::string with_sink =
      sinks.present() ? fmt::format(
                            "    const long double without_value = {};\n"
                            "    if (pass == 0 && without_value > top) top = without_value;\n"
                            "    if (pass == 1 && without_value > -INFINITY) total += expl(without_value - top);\n",
                            sink)
                      : "";
  const std::string of_product = times_factor(c, Slot::q) + times_factor(c, Slot::k);
  const std::string kept = c[Slot::keep].present() ? fmt::format(" && keep[{}]", mask_index(c, Slot::keep)) : "";
  return fmt::format(
      "// out[b][h][i][d] by its definition.\n"
      "static long double exact(int b, int h, int i, int d) {{\n"
      "  const int q_row = ((b * H + h) * M + i) * dk, kv_head = b * KV + h / (H / KV);\n"
      "  long double top = -INFINITY, total = 0, sum = 0;\n"
      "  for (int pass = 0; pass < 2; ++pass) {{\n"
      "    for (int j = 0; j < N; ++j) {{\n{}"
      "      long double s = 0;\n"
      "      for (int c = 0; c < dk; ++c) s += {} * {};\n"
      "{}      s = {};\n"
      "      if (pass == 0 && s > top) top = s;\n"
      "      const long double w = pass == 0 ? 0 : expl(s - top);\n"
      "      total += w;\n"
      "      if (pass == 1{}) sum += w * {}{};\n"
      "    }}\n{}  }}\n  return sum / total{};\n}}\n\n",
      hiding, read(c.dtype(), "q[q_row + c]"), read(c.k().dtype(), "k[(kv_head * N + j) * dk + c]"),
      of_product.empty() ? "" : fmt::format("      s = s{};\n", of_product), score, kept,
      read(c.v().dtype(), "v[(kv_head * N + j) * dv + d]"), times_factor(c, Slot::v), with_sink,
      c.dropout_p > 0 ? " / (1 - dropout_p)" : "");
}

std::string wrong_elements(const Reproducer& r) {
  std::string text = fmt::format(
      "// Wrong elements, {} of {}{}: place, what came out, what is right as Attest proved it, how far off it may be.\n"
      "static const struct {{ int b, h, i, d; double seen, proved, allowed; }} wrong[] = {{\n",
      r.wrong_in_all, r.elements,
      r.wrong_in_all > std::ssize(r.wrong) ? fmt::format(", the first {}", r.wrong.size()) : "");
  for (const WrongElement& one : r.wrong) {
    const auto at = r.problem.out_shape().index_of(one.element);
    const std::string found = one.found ? fmt::format("{}", *one.found) : "no answer";
    text += fmt::format("  {{{}, {}, {}, {}, {}, {}, {}}},  // {}; {}; {}\n", at[0], at[1], at[2], at[3],
                        c_number(one.found.value_or(NAN)), c_number(one.exact.lower), c_number(one.allowed), found,
                        certain_digits(one.exact), one.allowed);
  }
  return text + "};\n\n";
}

std::string judgement(const Reproducer& r, bool fills) {
  std::string inputs;
  for (const Slot slot : script_slots)
    if (r.problem[slot].present()) inputs += fmt::format("{}, ", name_of(slot));
  return fmt::format(
      "int main(void) {{\n"
      "  static {} out[B * H * M * dv];\n"
      "{}"
      "  const int called = kernel({}out);\n"
      "  int failed = 0;\n"
      "  for (int n = 0; n < {}; ++n) {{\n"
      "    const int b = wrong[n].b, h = wrong[n].h, i = wrong[n].i, d = wrong[n].d;\n"
      "    const double proved = wrong[n].proved, allowed = wrong[n].allowed;\n"
      "    const long double found = called ? {} : (long double)wrong[n].seen;\n"
      "    long double right = exact(b, h, i, d);\n"
      "    // Where long double is no wider than double, the plain loop may not be exact enough to judge.\n"
      "    if (!(fabsl(right - proved) <= allowed / 4)) right = proved;\n"
      "    const int off = !isfinite(found) || !(fabsl(found - right) <= allowed);\n"
      "    failed |= off;\n"
      "    printf(\"out[%d, %d, %d, %d]: %s %.17Lg, right %.17Lg (Attest: %.17g), allowed +- %.3g: %s\\n\", b, h, i, d,\n"
      "           called ? \"found\" : \"attest saw\", found, right, proved, allowed, off ? \"WRONG\" : \"right\");\n"
      "  }}\n  return failed;\n}}\n",
      c_type(r.output), fills ? "  fill_in();\n" : "", inputs, r.wrong.size(),
      read(r.output, "out[((b * H + h) * M + i) * dv + d]"));
}

}  // namespace

std::string c_script(const Reproducer& r) {
  const Problem& c = r.problem;
  const ScriptExtents e = script_extents(c);
  std::string text =
      "// Attention that is wrong for this input: exit status 1 while it is, 0 once it is right.\n"
      "// Compile it as C99 or C++17, with -lm.\n//\n";
  for (const std::string& line : words_of_problem(r)) text += fmt::format("// {}\n", line);
  text += "//\n";
  for (const std::string& line : words_of_origin(r)) text += fmt::format("// {}\n", line);
  text += "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n\n";
  text += fmt::format("enum {{ B = {}, H = {}, KV = {}, M = {}, N = {}, dk = {}, dv = {} }};\n", e.B, e.H, e.KV, e.M,
                      e.N, e.dk, e.dv);
  text += fmt::format("static const long double scale = {};  // {}\n", c_number(c.scale), c.scale);
  if (c.softcap > 0)
    text += fmt::format("static const long double softcap = {};  // {}\n", c_number(c.softcap), c.softcap);
  if (c.dropout_p > 0)
    text += fmt::format("static const long double dropout_p = {};  // {}\n", c_number(c.dropout_p), c.dropout_p);
  const bool whole = c.k().dtype() == DType::i8 || c.v().dtype() == DType::i8;
  text += fmt::format("// Every number is exact in its format; 16 and 8 bits are bit patterns{}. Row-major ",
                      whole ? ", but for whole numbers" : "");
  std::string fill;
  std::string tensors;
  for (const Slot slot : script_slots) {
    if (!c[slot].present()) continue;
    text += fmt::format("{}{} {}", slot == Slot::q ? "" : ", ", name_of(slot), axes_in_script(c, slot));
    const Declared declared = c_tensor(c[slot], name_of(slot));
    tensors += declared.text, fill += declared.fill;
  }
  text += ".\n" + tensors;
  // Not static: what only a kernel is given is read by nobody here.
  for (const WholeNumbersOfScript& list : sequences_in_script(c))
    text +=
        fmt::format("const int32_t {}[{}] = {{{}}};\n", list.name, list.numbers.size(), fmt::join(list.numbers, ", "));
  text += wrong_elements(r);
  return text + kernel_to_fill_in(r) + readers(r) + filling(fill) + reference(c) + judgement(r, !fill.empty());
}

}  // namespace attest
