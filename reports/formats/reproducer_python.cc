#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "reports/formats/reproducer_text.h"

namespace attest {
namespace {

/// A literal that reads back as the same double: -0.0 would be lost as the whole number -0.
std::string python_number(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

std::string python_element(const Tensor& tensor, std::int64_t element, bool by_bits) {
  if (by_bits) return fmt::format("{:#0{}x}", bits_of(tensor, element), 2 + 2 * size_of(tensor.dtype()));
  if (tensor.dtype() == DType::boolean) return tensor[element] != 0 ? "True" : "False";
  if (tensor.dtype() == DType::i8) return fmt::format("{:.0f}", tensor[element]);
  return python_number(tensor[element]);
}

/// "[0.0] * 7 + [3.0] + [0.0] * 16", or all numbers.
std::string python_list(const Tensor& tensor, bool by_bits) {
  const std::vector<EqualRun> runs = runs_of(tensor);
  if (is_told_by_runs(tensor, runs)) {
    std::string text;
    for (const EqualRun& run : runs) {
      const std::string one = fmt::format("[{}]{}", python_element(tensor, run.first, by_bits),
                                          run.count > 1 ? fmt::format(" * {}", run.count) : "");
      const bool broken = text.size() - (text.rfind('\n') + 1) + one.size() > 100;
      text += fmt::format("{}{}", text.empty() ? "" : broken ? " +\n    " : " + ", one);
    }
    return runs.size() > 1 ? "(" + text + ")" : text;
  }
  std::vector<std::string> words;
  words.reserve(static_cast<std::size_t>(tensor.elements()));
  for (std::int64_t e = 0; e < tensor.elements(); ++e) words.push_back(python_element(tensor, e, by_bits));
  const std::string text = wrapped(words, "    ");
  return text.size() < 100 && text.find('\n') == std::string::npos
             ? fmt::format("[{}]", text.empty() ? text : text.substr(4))
             : fmt::format("[\n{}\n]", text);
}

/// The number that a bit pattern `b` of the format is, as an expression.
std::string_view value_of_bits(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "struct.unpack('<d', struct.pack('<Q', b))[0]";
    case DType::f32:
      return "struct.unpack('<f', struct.pack('<I', b))[0]";
    case DType::bf16:
      return "struct.unpack('<f', struct.pack('<I', b << 16))[0]";
    case DType::f16:
      return "struct.unpack('<e', struct.pack('<H', b))[0]";
    case DType::f8_e5m2:
      return "struct.unpack('<e', struct.pack('<H', b << 8))[0]";
    default:
      return "nan if b & 127 == 127 else (-1.0) ** (b >> 7) * ((b & 7) + (8 if b & 120 else 0)) * "
             "2.0 ** (max(b >> 3 & 15, 1) - 10)";
  }
}

std::string python_tensor(const Problem& c, Slot slot) {
  const Tensor& tensor = c[slot];
  const std::string_view name = name_of(slot);
  if (!has_unusual_nan(tensor)) return fmt::format("{} = {}\n", name, python_list(tensor, false));
  return fmt::format(
      "# Bit patterns of {0}, because a NaN among them is not the usual one.\n{1}_bits = {2}\n"
      "{1} = [{3} for b in {1}_bits]\n",
      name_of(tensor.dtype()), name, python_list(tensor, true), value_of_bits(tensor.dtype()));
}

/// How PyTorch is asked for the same problem.
struct TorchCall {
  std::string device;    ///< "cpu"
  std::string back_end;  ///< of SDPBackend; empty: PyTorch's choice
  bool is_old = false;   ///< 1.13's, which has no scale
};

/// Nothing where the kernel is none of PyTorch's, or scaled_dot_product_attention does not have the problem.
std::optional<TorchCall> torch_call_of(const Reproducer& r) {
  TorchCall call{.device = "cpu", .back_end = {}, .is_old = r.version.starts_with("1.")};
  constexpr std::string_view named = "scaled_dot_product_attention, ";
  if (r.kernel != "pytorch:sdpa") {
    // The names of core/adapters/pytorch/sdpa_backends.py.
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> back_ends{{
        {"math", "MATH"},
        {"efficient", "EFFICIENT_ATTENTION"},
        {"flash", "FLASH_ATTENTION"},
        {"cudnn", "CUDNN_ATTENTION"},
    }};
    bool known = false;
    for (const auto& [name, word] : back_ends) {
      for (const std::string_view device : {"cpu", "cuda"}) {
        const std::string own = fmt::format("{}{} on {}", named, name, device);
        if (r.name != own && r.name != own + ", and its gradients") continue;
        known = true, call.device = device, call.back_end = word;
      }
    }
    if (!known) return std::nullopt;
  }
  const Problem& c = r.problem;
  const Tensor& mask = c.mask();
  const bool plain_dtype =
      c.dtype() == DType::f64 || c.dtype() == DType::f32 || c.dtype() == DType::f16 || c.dtype() == DType::bf16;
  const bool alike = c.k().dtype() == c.dtype() && c.v().dtype() == c.dtype() && r.output == c.dtype();
  const bool adds = mask.present() && mask.dtype() != DType::boolean;
  // It returns no log-sum-exp that a loss could be made of, and a sink is none of its arguments.
  if (c[Slot::d_lse].present() || (r.gradient && call.is_old)) return std::nullopt;
  if (!plain_dtype || !alike || (adds && mask.dtype() != c.dtype())) return std::nullopt;
  if (adds && c.mask_convention != MaskConvention::post_scale) return std::nullopt;
  if (c.causal == Causal::bottom_right || (c.causal != Causal::none && mask.present())) return std::nullopt;
  if (!variants_of(c).empty()) return std::nullopt;
  if (call.is_old && (!is_inverse_root(c.scale, c.q().shape()[3]) || c.q().shape()[1] != c.k().shape()[1]))
    return std::nullopt;
  return call;
}

std::string_view torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "float64";
    case DType::f32:
      return "float32";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    default:
      return "bool";
  }
}

std::string torch_tensor(const Problem& c, Slot slot, const std::string& device) {
  const Tensor& tensor = c[slot];
  const std::string_view name = name_of(slot), dtype = torch_dtype(tensor.dtype());
  std::string shape = axes_in_script(c, slot);
  shape = shape.substr(1, shape.size() - 2);
  const std::string values =
      has_unusual_nan(tensor)
          ? fmt::format(
                "torch.frombuffer(bytearray(struct.pack(f'<{{len({0}_bits)}}{1}', *{0}_bits)), dtype=torch.{2})", name,
                tensor.dtype() == DType::f64   ? 'Q'
                : tensor.dtype() == DType::f32 ? 'I'
                                               : 'H',
                dtype)
          : fmt::format("torch.tensor({}, dtype=torch.{})", name, dtype);
  return fmt::format("    {}_ = {}.reshape({}){}\n", name, values, shape,
                     device == "cpu" ? "" : fmt::format(".to(\"{}\")", device));
}

std::string torch_kernel(const Reproducer& r, const TorchCall& call) {
  const Problem& c = r.problem;
  const bool masked = c.mask().present(), causal = c.causal == Causal::top_left;
  std::string text = fmt::format("def kernel():\n    \"\"\"{} as a flat list, row-major {}.\"\"\"\n    import torch\n",
                                 answer_in_script(r), axes_of_answer(r));
  if (!call.back_end.empty()) text += "    from torch.nn.attention import SDPBackend, sdpa_kernel\n";
  for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::mask, Slot::d_out})
    if (c[slot].present()) text += torch_tensor(c, slot, call.device);
  if (r.gradient) {
    text += "    for argument in (q_, k_, v_):\n        argument.requires_grad_()\n";
    if (r.gradient == Gradient::mask) text += "    mask_.requires_grad_()\n";
  }
  const std::string mask = masked ? "mask_" : "None";
  std::string indent = "    ";
  if (!call.back_end.empty()) {
    text += fmt::format("    with sdpa_kernel([SDPBackend.{}]):\n", call.back_end);
    indent += "    ";
  }
  if (call.is_old) {
    text +=
        fmt::format("{}out = torch.nn.functional._scaled_dot_product_attention(q_, k_, v_, {}, 0.0, False, {})[0]\n",
                    indent, mask, causal ? "True" : "False");
  } else {
    text += fmt::format(
        "{}out = torch.nn.functional.scaled_dot_product_attention(q_, k_, v_, attn_mask={}, is_causal={}, scale=scale{})\n",
        indent, mask, causal ? "True" : "False", c.q().shape()[1] != c.k().shape()[1] ? ", enable_gqa=True" : "");
  }
  if (r.gradient)
    text +=
        fmt::format("{}(gradient,) = torch.autograd.grad(out, {}_, d_out_)\n", indent, name_of(slot_of(*r.gradient)));
  return text + fmt::format("    return {}.double().flatten().tolist()\n", r.gradient ? "gradient" : "out");
}

std::string stub(const Reproducer& r) {
  std::vector<std::string_view> others;
  for (const Slot slot : script_slots)
    if (slot >= Slot::mask && r.problem[slot].present()) others.push_back(name_of(slot));
  std::string names;
  for (const std::string_view name : others) names += fmt::format("{}{}", name == others.back() ? " and " : ", ", name);
  return fmt::format(
      "def kernel():\n"
      "    \"\"\"Put your call here: return {} as a flat list, row-major {}. q, k, v{} are such lists, too,\n"
      "    numpy.array(q, dtype=...).reshape(B, H, M, dk) and the like. None: what Attest saw is judged.\"\"\"\n"
      "    return None\n",
      answer_in_script(r), axes_of_answer(r), names);
}

/// The lines that hide a key from a row; empty: a row sees all keys.
std::string hiding(const Problem& c) {
  std::string text;
  const auto hidden_if = [&text](const std::string& condition) {
    text += fmt::format("        if {}:\n            continue\n", condition);
  };
  for (const std::string& condition : hiding_by_position(c)) hidden_if(condition);
  if (c.mask().present() && c.mask().dtype() == DType::boolean) hidden_if(fmt::format("not mask[{}]", mask_index(c)));
  if (c.mask().present() && c.mask().dtype() != DType::boolean)
    hidden_if(fmt::format("mask[{}] == -inf", mask_index(c)));
  return text;
}

/// What a scaled product becomes, with the same 60 digits. 1 - e^(-2x) keeps 40 of them where it is taken; below that
/// the next term of the series, x^5, is beyond 80.
std::string_view cap(const Problem& c) {
  if (c.softcap == 0) return "";
  return "def capped(t):\n"
         "    \"\"\"softcap * tanh(t / softcap), to 40 digits.\"\"\"\n"
         "    x = abs(t) / Fraction(softcap)\n"
         "    x = Decimal(x.numerator) / Decimal(x.denominator)\n"
         "    e = (-2 * x).exp()\n"
         "    tanh = (1 - e) / (1 + e) if x > Decimal(\"1e-20\") else x - x**3 / 3\n"
         "    return (-1 if t < 0 else 1) * Fraction(softcap) * Fraction(tanh)\n\n\n";
}

/// " * Fraction(k_descale[0])"; empty: the tensor has no factors.
std::string times_factor(const Problem& c, Slot tensor, std::string_view number) {
  const std::string factor = factor_in_script(c, tensor, "//");
  return factor.empty() ? factor : fmt::format(" * {}({})", number, factor);
}

/// The lines of a function of (b, h, i) that make scores of that row's keys, as fractions; of key N, the sink, too.
/// With a cap and `bends` its derivative at each key's product.
std::string scores_of_row(const Problem& c, bool bends) {
  const bool adds = c.mask().present() && c.mask().dtype() != DType::boolean;
  const SlopeInScript slope = slope_in_script(c);
  const std::string bent = slope.slope.empty() ? "" : fmt::format(" - Fraction({}) * abs({})", slope.slope, slope.away);
  const std::string added = (adds ? fmt::format(" + Fraction(mask[{}])", mask_index(c)) : "") + bent;
  const std::string score = c.softcap > 0 ? fmt::format("capped(Fraction(scale) * qk){}", added)
                            : convention_of(c) == MaskConvention::pre_scale && adds
                                ? fmt::format("Fraction(scale) * (qk{})", added)
                                : fmt::format("Fraction(scale) * qk{}", added);
  return fmt::format(
      "    getcontext().prec = 60\n"
      "    q_row, kv_head, scores = ((b * H + h) * M + i) * dk, b * KV + h // (H // KV), {{}}\n"
      "{}"
      "    for j in range(N):\n"
      "{}"
      "        k_row = (kv_head * N + j) * dk\n"
      "        qk = sum(Fraction(q[q_row + c]) * Fraction(k[k_row + c]) for c in range(dk)){}\n"
      "        scores[j] = {}\n"
      "{}{}",
      bends ? "    bend = {}\n" : "", hiding(c),
      times_factor(c, Slot::q, "Fraction") + times_factor(c, Slot::k, "Fraction"), score,
      bends ? "        x = 1 - (capped(Fraction(scale) * qk) / Fraction(softcap)) ** 2\n"
              "        bend[j] = Decimal(x.numerator) / Decimal(x.denominator)\n"
            : "",
      c[Slot::sink].present() ? "    if sink[h] > -inf:\n        scores[N] = Fraction(sink[h])\n" : "");
}
/// And those that make weights of these, which need not add up to 1.
constexpr std::string_view weights_of_scores =
    "    top, weights = max(scores.values()), {}\n"
    "    for j, score in scores.items():\n"
    "        x = score - top\n"
    "        weights[j] = (Decimal(x.numerator) / Decimal(x.denominator)).exp()\n";

/// " if j < N and keep[...]": of what adds to the output. A sink has no value, and what is dropped adds none.
std::string counted(const Problem& c) {
  std::string text = c[Slot::sink].present() ? " if j < N" : "";
  if (c[Slot::keep].present())
    text += fmt::format("{} keep[{}]", text.empty() ? " if" : " and", mask_index(c, Slot::keep));
  return text;
}

std::string reference(const Problem& c) {
  return fmt::format(
      "def exact(b, h, i, d):\n"
      "    \"\"\"out[b, h, i, d] by its definition: {} as fractions, the rest in 60 digits.\"\"\"\n"
      "{}{}"
      "    values = (w * Decimal(v[(kv_head * N + j) * dv + d]){} for j, w in weights.items(){})\n"
      "    return sum(values) / sum(weights.values()){}\n",
      c.softcap > 0 ? "products" : "scores", scores_of_row(c, /*bends=*/false), weights_of_scores,
      times_factor(c, Slot::v, "Decimal"), counted(c), c.dropout_p > 0 ? " / (1 - Decimal(dropout_p))" : "");
}

/// The definition's gradients: what a loss changes by with an element, which is one of many sums over the rows.
std::string reference_of(Gradient gradient, const Problem& c) {
  const std::string divided = c.dropout_p > 0 ? " / (1 - Decimal(dropout_p))" : "";
  std::string text = fmt::format(
      "def row(b, h, i):\n"
      "    \"\"\"Of a row by key: the share of its value in out, and the gradient by its score{}. {} as fractions, the\n"
      "    rest in 60 digits.\"\"\"\n"
      "{}"
      "    if not scores:\n"
      "        return {{}}, {{}}{}\n"
      "{}"
      "    total, at = sum(weights.values()), (b * H + h) * M + i\n"
      "    weights = {{j: w / total for j, w in weights.items()}}\n"
      "    shares = {{j: w{} for j, w in weights.items(){}}}\n"
      "    products = {{j: sum(Decimal(d_out[at * dv + d]) * Decimal(v[(kv_head * N + j) * dv + d]) for d in range(dv))\n"
      "                for j in shares}}\n"
      "    delta = sum(shares[j] * products[j] for j in shares){}\n"
      "    by_score = {{j: shares.get(j, 0) * products.get(j, 0) - w * delta for j, w in weights.items()}}\n"
      "    return shares, by_score{}\n\n\n",
      c.softcap > 0 ? " and by its product" : "", c.softcap > 0 ? "Products" : "Scores",
      scores_of_row(c, /*bends=*/c.softcap > 0), c.softcap > 0 ? ", {}" : "", weights_of_scores, divided, counted(c),
      c[Slot::d_lse].present() ? " - Decimal(d_lse[at])" : "",
      c.softcap > 0 ? ", {j: x * bend[j] for j, x in by_score.items() if j < N}" : "");
  // What the sums are of; a row's third part is what it has by products where that is another number.
  const std::string_view by_product = c.softcap > 0 ? "row(b, h, i)[2]" : "row(b, h, i)[1]";
  const Shape& mask = c.mask().shape();
  const bool of_scaled = convention_of(c) == MaskConvention::pre_scale;
  switch (gradient) {
    case Gradient::q:
      text += fmt::format(
          "def exact(b, h, i, c):\n"
          "    \"\"\"dq[b, h, i, c].\"\"\"\n"
          "    kv_head = b * KV + h // (H // KV)\n"
          "    return Decimal(scale) * sum(x * Decimal(k[(kv_head * N + j) * dk + c]) for j, x in {}.items() if j < N)\n",
          by_product);
      break;
    case Gradient::k:
      text += fmt::format(
          "def exact(b, kv, j, c):\n"
          "    \"\"\"dk[b, kv, j, c], of all heads that read it.\"\"\"\n"
          "    return Decimal(scale) * sum({}.get(j, 0) * Decimal(q[((b * H + h) * M + i) * dk + c])\n"
          "                                for h in range(kv * (H // KV), (kv + 1) * (H // KV)) for i in range(M))\n",
          by_product);
      break;
    case Gradient::v:
      text +=
          "def exact(b, kv, j, d):\n"
          "    \"\"\"dv[b, kv, j, d], of all heads that read it.\"\"\"\n"
          "    return sum(row(b, h, i)[0].get(j, 0) * Decimal(d_out[((b * H + h) * M + i) * dv + d])\n"
          "               for h in range(kv * (H // KV), (kv + 1) * (H // KV)) for i in range(M))\n";
      break;
    case Gradient::mask:
      text += fmt::format(
          "def exact(b, h, i, j):\n"
          "    \"\"\"dmask[b, h, i, j], of all rows that read it.\"\"\"\n"
          "    entries, heads = {}, {}\n"
          "    return {}sum(row(b, h, i)[1].get(j, 0) for b in entries for h in heads)\n",
          mask[0] > 1 ? "(b,)" : "range(B)", mask[1] > 1 ? "(h,)" : "range(H)", of_scaled ? "Decimal(scale) * " : "");
      break;
    case Gradient::sink:
      text +=
          "def exact(h):\n"
          "    \"\"\"dsink[h], of the rows of all batch entries.\"\"\"\n"
          "    return sum(row(b, h, i)[1].get(N, 0) for b in range(B) for i in range(M))\n";
      break;
  }
  return text;
}

std::string wrong_elements(const Reproducer& r) {
  std::string text = fmt::format(
      "# Wrong elements of {}, {} of {}{}: place, and in the flat list; what came out, what is right as Attest proved it,\n"
      "# how far off it may be.\n"
      "wrong = [\n",
      answer_in_script(r), r.wrong_in_all, r.elements,
      r.wrong_in_all > std::ssize(r.wrong) ? fmt::format(", the first {}", r.wrong.size()) : "");
  for (const WrongElement& one : r.wrong) {
    const auto at = shape_of_answer(r).index_of(one.element);
    const auto place = std::span(at).first(static_cast<std::size_t>(shape_of_answer(r).rank()));
    text += fmt::format("    (({}{}), {}, {}, \"{}\", {}),\n", fmt::join(place, ", "), place.size() == 1 ? "," : "",
                        one.element, one.found ? python_number(*one.found) : "None", certain_digits(one.exact),
                        python_number(one.allowed));
  }
  return text + "]\n";
}

constexpr std::string_view judgement =
    R"(try:
    out = kernel()
except Exception as error:
    print(f"the kernel did not run: {error!r}", file=sys.stderr)
    sys.exit(2)
failed = False
for where, at, seen, proved, allowed in wrong:
    found = seen if out is None else out[at]
    right = exact(*where)
    off = found is None or not isfinite(found) or not abs(Decimal(found) - right) <= allowed
    failed = failed or off
    print(f"{name}{list(where)}: {'attest saw' if out is None else 'found'} {found}, right {float(right)} "
          f"(Attest: {proved}), allowed +- {allowed:.3g}: {'WRONG' if off else 'right'}")
sys.exit(1 if failed else 0)
)";

}  // namespace

std::string python_script(const Reproducer& r) {
  const Problem& c = r.problem;
  const ScriptExtents e = script_extents(c);
  std::string text = fmt::format(
      "#!/usr/bin/env python3\n# {} that is wrong for this input: exit status 1 while it is, 0 once it is right, "
      "2 where it does not run.\n#\n",
      r.gradient ? "A gradient of attention" : "Attention");
  for (const std::string& line : words_of_problem(r)) text += fmt::format("# {}\n", line);
  text += "#\n";
  for (const std::string& line : words_of_origin(r)) text += fmt::format("# {}\n", line);
  bool bits = false;
  for (const Tensor& tensor : c.tensors) bits = bits || has_unusual_nan(tensor);
  text += fmt::format(
      "{}import sys\nfrom decimal import Decimal, getcontext\nfrom fractions import Fraction\nfrom math import inf, isfinite, "
      "nan  # as numbers below\n\n",
      bits ? "import struct\n" : "");
  text += fmt::format("B, H, KV, M, N, dk, dv = {}, {}, {}, {}, {}, {}, {}\nscale = {}\n", e.B, e.H, e.KV, e.M, e.N,
                      e.dk, e.dv, python_number(c.scale));
  if (c.softcap > 0) text += fmt::format("softcap = {}\n", python_number(c.softcap));
  if (c.dropout_p > 0) text += fmt::format("dropout_p = {}\n", python_number(c.dropout_p));
  text += fmt::format("name = \"{}\"\n", answer_in_script(r));
  text += "# Every number is exact in its format. Row-major ";
  for (const Slot slot : script_slots)
    if (c[slot].present())
      text += fmt::format("{}{} {}", slot == Slot::q ? "" : ", ", name_of(slot), axes_in_script(c, slot));
  text += ".\n";
  for (const Slot slot : script_slots)
    if (c[slot].present()) text += python_tensor(c, slot);
  for (const WholeNumbersOfScript& list : sequences_in_script(c))
    text += fmt::format("{} = [{}]\n", list.name, fmt::join(list.numbers, ", "));
  text += wrong_elements(r) + "\n\n";
  const std::optional<TorchCall> torch = torch_call_of(r);
  text += (torch ? torch_kernel(r, *torch) : stub(r)) + "\n\n";
  return text + std::string(cap(c)) + (r.gradient ? reference_of(*r.gradient, c) : reference(c)) + "\n\n" +
         std::string(judgement);
}

}  // namespace attest
