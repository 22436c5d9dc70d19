#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/case_file.h"
#include "core/problem/describe.h"
#include "core/problem/fields.h"
#include "core/support/errors.h"
#include "core/support/json_writer.h"
#include "core/support/names.h"
#include "properties/catalogue/property.h"
#include "properties/road/fit_form.h"
#include "properties/road/simpler_cases.h"
#include "properties/road/simplify.h"
#include "reports/run/shape_options.h"
#include "reports/service/asked.h"
#include "reports/service/requests.h"

namespace attest {
namespace {

/// Whole numbers in the order of the request; none where it has no such key.
Indices listed(const Request& request, std::string_view key) {
  const nlohmann::json* const json = request.said.find(key);
  Indices numbers;
  if (json == nullptr) return numbers;
  if (!json->is_array()) request.said.refuse(key, "it is an array of whole numbers");
  for (const nlohmann::json& number : *json) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > most_whole_number)
      request.said.refuse(key, "it is an array of whole numbers");
    numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

/// At most so many of the first indices of each axis, in the order of axes_of; further axes are whole.
Case cropped(Case c, const Indices& most) {
  const std::vector<AxisGroup>& axes = axes_of(c.operation);
  for (std::size_t axis = 0; axis < std::min(axes.size(), most.size()); ++axis) {
    Selection s = everything(c);
    const std::size_t extent = (s.*axes[axis].front()).size();
    const auto kept = static_cast<std::size_t>(std::max<std::int64_t>(most[axis], 1));
    const auto is_tied = [&](auto part) { return (s.*part).size() == extent; };
    if (kept >= extent || !std::ranges::all_of(axes[axis], is_tied)) continue;
    for (const auto part : axes[axis]) (s.*part).resize(kept);
    keep_widths(c, s);
    c = select(c, s);
  }
  return c;
}

Case with_head(Case c, std::int64_t head) {
  const Extents e = extents_of(c);
  if (e.heads < 2) return c;
  Selection s = everything(c);
  keep_head(e, s, head % e.heads);
  keep_widths(c, s);
  return select(c, s);
}

Case simplified(Case c, const Request& request) {
  const Indices head = listed(request, "head"), crop = listed(request, "crop");
  const Indices forms = listed(request, "forms"), numbers = listed(request, "numbers");
  if (!head.empty()) c = with_head(std::move(c), head.front());
  c = cropped(std::move(c), crop);
  for (const std::int64_t form : forms)
    if (const auto& steps = form_steps(c.operation); form < std::ssize(steps))
      (void)steps[static_cast<std::size_t>(form)](c);
  for (std::size_t slot = 0; slot < std::min(numbers.size(), c.tensors.size()); ++slot)
    if (numbers[slot] < std::ssize(simplifications))
      (void)simplify_all(c, static_cast<Slot>(slot), simplifications[static_cast<std::size_t>(numbers[slot])]);
  if (!head.empty() || !crop.empty() || !forms.empty() || !numbers.empty()) c.provenance.shrunk = "yes";
  return c;
}

DType drawn_dtype(const Request& request) {
  std::string word;
  request.said.read("dtype", word);
  const auto dtype = named<DType>(word);
  if (!dtype || !is_floating(*dtype)) request.said.refuse("dtype", "it is the dtype of a case, as \"f32\"");
  return *dtype;
}

Shapes drawn_shapes(const Request& request) {
  Shapes shapes = small_shapes;
  if (const auto large = request.said.word("large", Words<LargeCases>::names))
    shapes.large = static_cast<LargeCases>(*large);
  if (const nlohmann::json* const given = request.said.find("shapes")) {
    if (!given->is_array()) request.said.refuse("shapes", "it is an array of shapes, as \"1,8,2,64,200,64\"");
    for (const nlohmann::json& shape : *given) {
      if (!shape.is_string()) request.said.refuse("shapes", "it is an array of shapes, as \"1,8,2,64,200,64\"");
      shapes.given.push_back(shape_of("shapes", shape.get<std::string>()));
    }
  }
  return shapes;
}

Case drawn(const Request& request) {
  std::string name;
  std::int64_t k = 0;
  // JSON readers differ beyond 2^63; so many seeds are enough.
  std::int64_t seed = 1;
  request.said.read("property", name);
  request.said.read("k", WholeNumbers{0, most_whole_number}, k);
  request.said.read("seed", WholeNumbers{0, most_whole_number}, seed);
  Case c =
      generate(property_named(name), drawn_dtype(request), static_cast<std::uint64_t>(seed), k, drawn_shapes(request));
  // Variants are for functions that are said to have them.
  if (request.said.find("manifest") == nullptr)
    for (const Variant& variant : variants_of(c)) leave_out(c, variant.name);
  return c;
}

Case within_limits(Case c, const Request& request) {
  const Manifest manifest = manifest_asked(request, c);
  c = project(std::move(c), manifest);
  if (c.provenance.over_budget) throw UsageError(*c.provenance.over_budget);
  return c;
}

}  // namespace

Answer answer_case(const Request& request) {
  Case c = request.said.find("property") != nullptr ? drawn(request) : decode_case(request.file, "the case");
  c = simplified(std::move(c), request);
  if (request.said.find("manifest") != nullptr) c = within_limits(std::move(c), request);
  JsonWriter text;
  text.value(describe(c));
  return {.members = fmt::format("\"text\":{}", text.text()), .file = encode_case(c)};
}

}  // namespace attest
