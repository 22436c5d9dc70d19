#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/case_file.h"
#include "core/problem/describe.h"
#include "core/support/errors.h"
#include "core/support/json_writer.h"
#include "core/support/names.h"
#include "properties/catalogue/property.h"
#include "properties/road/simpler_cases.h"
#include "reports/run/shape_options.h"
#include "reports/service/asked.h"
#include "reports/service/requests.h"

namespace attest {
namespace {

/// The steps that do something are counted, those of a case and, when they are through, those of what became of it.
Case with_steps(Case c, const Indices& taken) {
  std::vector<Step> steps = steps_from(c);
  std::size_t next = 0, idle = 0;
  std::int64_t place = 0;
  for (std::size_t of = 0; of < taken.size() && idle < steps.size();) {
    if (next == steps.size()) next = 0;
    Case simpler = c;
    if (!steps[next++](simpler)) {
      ++idle;
      continue;
    }
    if (place++ != taken[of]) {
      idle = 0;
      continue;
    }
    ++of;
    c = std::move(simpler);
    c.provenance.shrunk = "yes";
    steps = steps_from(c);
    next = std::min(next, steps.size());
    idle = 0;
  }
  return c;
}

DType drawn_dtype(const Request& request) {
  std::string word;
  request.said.read("dtype", word);
  const auto dtype = named<DType>(word);
  if (!dtype || *dtype == DType::boolean) request.said.refuse("dtype", "it is the dtype of a case, as \"f32\"");
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
  if (request.said.find("manifest") == nullptr) return c;
  c = project(std::move(c), manifest_asked(request, c));
  if (c.provenance.over_budget) throw UsageError(*c.provenance.over_budget);
  return c;
}

}  // namespace

Answer answer_case(const Request& request) {
  Case c = request.said.find("property") != nullptr ? drawn(request) : decode_case(request.file, "the case");
  Indices steps;
  request.said.read("steps", WholeNumbers{0, most_whole_number}, steps);
  c = with_steps(std::move(c), steps);
  JsonWriter text;
  text.value(describe(c));
  return {.members = fmt::format("\"text\":{}", text.text()), .file = encode_case(c)};
}

}  // namespace attest
