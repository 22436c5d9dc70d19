#include "reports/formats/badge.h"

#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "core/support/json_writer.h"
#include "reports/formats/junit.h"
#include "reports/results/coverage.h"

namespace attest {
namespace {

constexpr std::string_view label = "attest";

struct Colour {
  std::string_view name;  ///< as services have it
  std::string_view hex;   ///< dark enough for white letters
};

Colour colour_of(const Conclusion& conclusion) {
  if (conclusion.exit_status == 0) return {"brightgreen", "#2a7f2a"};
  if (conclusion.exit_status == 1 || conclusion.exit_status == 3) return {"red", "#b3261e"};
  return {"yellow", "#8a6a00"};
}

/// What is undecided, interrupted or was not tested has no numbers that a glance should take for a result.
std::string words_of(const Summary& summary, const Conclusion& conclusion) {
  if (conclusion.exit_status > 1) return conclusion.headline;
  const Concerned concerned = concerned_in(summary);
  std::set<std::string> violated;
  for (const auto& [subject, counted] : conclusion.subjects)
    if (counted == Counted::violated || counted == Counted::expected) violated.insert(subject.property);
  if (!violated.empty())
    return fmt::format("{}: {} of {} properties", conclusion.headline, violated.size(), concerned.properties);
  return fmt::format("{}: {} of {} properties judged", conclusion.headline, concerned.judged, concerned.properties);
}

/// Pixels that the words are given, at 11 px in a sans-serif font; the letters are fitted to them.
std::size_t width_of(std::string_view words) {
  return words.size() * 65 / 10 + 10;
}

}  // namespace

std::string to_badge(const Summary& summary, const Journal& /*journal*/, const std::string& /*folder*/,
                     const Conclusion& conclusion) {
  const std::string words = xml_escaped(words_of(summary, conclusion));
  const std::size_t left = width_of(label), right = width_of(words);
  const auto text = [](std::size_t from, std::size_t width, std::string_view said) {
    return fmt::format("<text x=\"{}\" y=\"14\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>",
                       from + 5, width - 10, said);
  };
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"20\" role=\"img\" aria-label=\"{}: {}\">"
      "<title>{}: {}</title>"
      "<rect width=\"{}\" height=\"20\" rx=\"3\" fill=\"{}\"/><rect width=\"{}\" height=\"20\" rx=\"3\" fill=\"#444\"/>"
      "<g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">{}{}</g></svg>\n",
      left + right, label, words, label, words, left + right, colour_of(conclusion).hex, left, text(0, left, label),
      text(left, right, words));
}

std::string to_badge_json(const Summary& summary, const Journal& /*journal*/, const std::string& /*folder*/,
                          const Conclusion& conclusion) {
  JsonWriter json;
  json.begin_object();
  json.member("schemaVersion", 1).member("label", label);
  json.member("message", words_of(summary, conclusion)).member("color", colour_of(conclusion).name);
  json.end_object();
  return json.text() + '\n';
}

}  // namespace attest
