#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/oracle/oracle.h"
#include "core/problem/case_file.h"
#include "core/support/infinity.h"
#include "core/support/json_writer.h"
#include "core/value/safetensors.h"
#include "reports/service/asked.h"
#include "reports/service/requests.h"

namespace attest {
namespace {

/// The ends of value ± certificate, rounded outward; NaN where there is no value.
Enclosure around(const ElementBound& e) {
  if (!(e.certificate < infinity)) return {std::nan(""), std::nan("")};
  if (e.certificate == 0) return {e.value, e.value};
  return {std::nextafter(e.value - e.certificate, -infinity), std::nextafter(e.value + e.certificate, infinity)};
}

std::string excuses_text(const AttentionBounds& bounds) {
  std::map<std::string_view, std::int64_t> excused;
  for (const ElementBound& e : bounds.elements)
    if (e.excuse != Excuse::none) ++excused[name_of(e.excuse)];
  JsonWriter json;
  json.begin_object();
  for (const auto& [word, count] : excused) json.member(word, count);
  return json.end_object().text();
}

/// A tensor filled from the elements (or rows) by numbers that `of` takes from them.
template <class Records, class Of>
Tensor tensor_of(DType dtype, const Shape& shape, const Records& records, Of&& of) {
  Tensor tensor(dtype, shape);
  std::int64_t at = 0;
  for (const auto& record : records) tensor.set(at++, of(record));
  return tensor;
}

}  // namespace

Answer answer_bounds(const Request& request) {
  const AnsweredCase asked = decode_answered_case(request.file, "the problem");
  const Case& c = asked.value;
  const Manifest manifest = manifest_asked(request, c);
  Arithmetic arithmetic = manifest.arithmetic_for(c);
  arithmetic.output = out_dtype_asked(request, c);
  const bool ignores = manifest.claims_to(Claim::ignores_dead_values), multihead = c.operation == Operation::multihead;
  bool narrow = false;
  request.said.read("narrow", narrow);
  const std::optional<Indices> chosen = rows_asked(request, c);
  if (multihead && (chosen || narrow))
    throw UsageError("\"rows\" and \"narrow\" are for attention; a multi-head problem is looked at as a whole");
  const AskedRows rows = chosen ? AskedRows(*chosen) : std::nullopt;
  const AttentionBounds bounds =
      multihead ? multihead_bounds(c, arithmetic, ignores) : attention_bounds(c, arithmetic, ignores, rows);

  Shape shape = c.out_shape();
  if (rows) shape = Shape{std::ssize(*rows), shape[3]};
  std::vector<Enclosure> exact;
  exact.reserve(bounds.elements.size());
  if (narrow)
    for (const ElementFacts& facts : exact_elements(c, arithmetic, rows)) exact.push_back(facts.exact);
  else
    for (const ElementBound& e : bounds.elements) exact.push_back(around(e));

  TensorFile file;
  auto& tensors = file.tensors;
  tensors.emplace_back("lower", tensor_of(DType::f64, shape, exact, [](const Enclosure& e) { return e.lower; }));
  tensors.emplace_back("upper", tensor_of(DType::f64, shape, exact, [](const Enclosure& e) { return e.upper; }));
  const auto& elements = bounds.elements;
  tensors.emplace_back("bound", tensor_of(DType::f64, shape, elements, [](const auto& e) { return e.allowed; }));
  tensors.emplace_back("judged", tensor_of(DType::boolean, shape, elements,
                                           [](const auto& e) { return e.excuse == Excuse::none ? 1.0 : 0.0; }));
  tensors.emplace_back("finite", tensor_of(DType::boolean, shape, elements, [](const auto& e) {
                         const bool known = e.excuse == Excuse::none || e.excuse == Excuse::vacuous;
                         return known && e.finite_required ? 1.0 : 0.0;
                       }));
  if (!multihead) {
    const Shape of_rows = rows ? Shape{std::ssize(*rows)} : Shape{shape[0], shape[1], shape[2]};
    tensors.emplace_back("lse", tensor_of(DType::f64, of_rows, bounds.rows, [](const auto& row) { return row.lse; }));
    tensors.emplace_back("lse_bound", tensor_of(DType::f64, of_rows, bounds.rows,
                                                [](const auto& row) { return row.lse_allowed + row.lse_certificate; }));
  }
  return {.members = fmt::format("\"excused\":{}", excuses_text(bounds)), .file = write_safetensors(file)};
}

}  // namespace attest
