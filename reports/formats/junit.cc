#include "reports/formats/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "core/support/visible.h"
#include "reports/results/summary_words.h"
#include "reports/run_folder/run_folder.h"
#include "reports/run_folder/version.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// A kernel that fails everywhere says the same of every property: messages are for lists.
constexpr std::size_t longest_message = 300;

std::string time_attribute(const std::string& seconds) {
  return seconds.empty() ? "" : fmt::format(" time=\"{}\"", seconds);
}

struct Suite {
  std::string name;
  std::vector<std::pair<std::string, std::string>> properties;
  std::string cases;
  std::string time;      ///< in seconds; empty: unknown
  std::string output{};  ///< of the tests that are added from here on; empty: they have none
  std::int64_t tests = 0, failures = 0, errors = 0, skipped = 0;

  /// `element`: "failure", "error", "skipped", or empty for what is as it should be.
  void add(std::string_view class_name, std::string_view test, std::string_view element = "",
           std::string_view type = "", const std::string& message = "", std::string_view body = "") {
    ++tests;
    // A suite's time is that of its first test: only of a whole run it is known.
    cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"{}", xml_escaped(class_name), xml_escaped(test),
                         tests == 1 ? time_attribute(time) : "");
    const std::string said =
        output.empty() ? "" : fmt::format("      <system-out>{}</system-out>\n", xml_escaped(output));
    if (element.empty()) {
      cases += said.empty() ? "/>\n" : fmt::format(">\n{}    </testcase>\n", said);
      return;
    }
    (element == "failure" ? failures : element == "error" ? errors : skipped) += 1;
    cases +=
        fmt::format(">\n      <{} message=\"{}\"", element, xml_escaped(cut_short(one_line(message), longest_message)));
    // Readers know no type of what is skipped.
    if (!type.empty()) cases += fmt::format(" type=\"{}\"", xml_escaped(type));
    cases += body.empty() ? "/>\n" : fmt::format(">{}</{}>\n", xml_escaped(body), element);
    cases += said + "    </testcase>\n";
  }
};

/// The fact of the first "begin"; empty where no journal says it.
std::string fact_of(const Journal& journal, const char* name) {
  for (const MetaRecord& meta : journal.meta) {
    const auto fact = meta.facts.find(name);
    if (meta.event == "begin" && fact != meta.facts.end()) return fact->second;
  }
  return {};
}

/// How long the runs took together, with the three decimals that readers' schemas allow; empty where the journal does
/// not say it, as of a run that was killed, even if it went on later, and of a merged journal.
std::string seconds_of(const Journal& journal) {
  double seconds = 0;
  std::ptrdiff_t begun = 0, ended = 0;
  for (const MetaRecord& meta : journal.meta) {
    if (meta.event == "begin") ++begun;
    if (meta.event != "end") continue;
    ++ended;
    const auto fact = meta.facts.find("seconds");
    if (fact == meta.facts.end()) return {};
    const std::string& text = fact->second;
    double part = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    // No run of attest wrote a number that is none, or years.
    if (error != std::errc() || end != text.data() + text.size() || !(part >= 0 && part < 1e8)) return {};
    seconds += part;
  }
  return begun > 0 && begun == ended ? fmt::format("{:.3f}", seconds) : "";
}

std::string text_of(const Suite& suite, const Journal& journal) {
  std::string attributes = time_attribute(suite.time);
  // Readers take no time zone; it is UTC.
  if (std::string time = fact_of(journal, "time"); !time.empty())
    attributes += fmt::format(" timestamp=\"{}\"", xml_escaped(time.substr(0, time.find('Z'))));
  if (const std::string host = fact_of(journal, "host"); !host.empty())
    attributes += fmt::format(" hostname=\"{}\"", xml_escaped(host));
  std::string text = fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"{}>\n    <properties>\n",
      xml_escaped(suite.name), suite.tests, suite.failures, suite.errors, suite.skipped, attributes);
  for (const auto& [name, value] : suite.properties)
    text += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, xml_escaped(value));
  return text + "    </properties>\n" + suite.cases + "  </testsuite>\n";
}

std::string body_of(const PropertySummary& property, const std::string& folder, Outcome outcome) {
  std::string body;
  for (const FindingRecord& finding : property.findings) {
    if (finding.verdict.outcome != outcome) continue;
    body += fmt::format("\ncase {} ({}, utilisation {}): {}\nreplay: {}\n", finding.k, finding.kind(),
                        short_number(finding.verdict.utilisation), finding.verdict.reason,
                        replay_line(folder, finding.case_file));
  }
  return body.empty() ? "\nno case of it was saved\n" : body;
}

void add_property(Suite& suite, const std::string& class_name, const PropertySummary& property, Counted counted,
                  const std::string& folder) {
  const Tally& tally = property.tally;
  const std::string reach = reach_text(tally);
  suite.output = reach.empty() ? "" : "judged against the exact answer up to " + reach;
  switch (counted) {
    case Counted::held:
      return suite.add(class_name, property.name);
    case Counted::violated: {
      const bool saved = !property.findings.empty() && property.findings.front().verdict.outcome == Outcome::violated;
      return suite.add(
          class_name, property.name, "failure", saved ? property.findings.front().kind() : "violated",
          fmt::format("violated in {} of {} judged cases: {}", tally.violated, tally.judged(), property.reason),
          body_of(property, folder, Outcome::violated));
    }
    case Counted::expected:
      return suite.add(class_name, property.name, "skipped", "", "violated, as expected: " + property.reason);
    case Counted::undecided:
      return suite.add(class_name, property.name, "error", "inconclusive", "undecided: " + property.reason,
                       body_of(property, folder, Outcome::inconclusive));
    case Counted::unreached:
      return suite.add(class_name, property.name, "skipped", "", "interrupted before its first case");
    case Counted::skipped:
      return suite.add(class_name, property.name, "skipped", "", property.reason);
  }
}

Suite suite_of_the_run(const Summary& summary, const Journal& journal, const Conclusion& conclusion) {
  Suite suite{.name = "attest", .properties = {}, .cases = {}, .time = seconds_of(journal)};
  suite.properties = {{"attest", version()}, {"seed", std::to_string(summary.seed)}};
  if (const std::string arguments = fact_of(journal, "arguments"); !arguments.empty())
    suite.properties.emplace_back("arguments", arguments);
  if (!summary.against.empty()) suite.properties.emplace_back("against", summary.against);
  suite.properties.emplace_back("coverage", conclusion.coverage);
  if (!conclusion.quick_look.empty()) suite.properties.emplace_back("quick_look", conclusion.quick_look);
  // A run that judged nothing is no success, however few failures there are.
  if (conclusion.faults.empty())
    suite.add("attest", "run");
  else
    suite.add("attest", "run", "error", conclusion.faults.front().type, std::string(conclusion.faults.front().words));
  for (const KernelRecord& kernel : summary.not_started)
    suite.add("attest", kernel.id, "skipped", "", "did not start: " + kernel.not_started);
  for (const std::string& problem : conclusion.problems)
    suite.add("attest", cut_short(one_line(problem), longest_message), "failure", "expectation", problem, problem);
  return suite;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string xml;
  for (const char c : visible(text, "\uFFFD", "\n\t\r")) {
    switch (c) {
      case '&':
        xml += "&amp;";
        break;
      case '<':
        xml += "&lt;";
        break;
      case '>':
        xml += "&gt;";
        break;
      case '"':
        xml += "&quot;";
        break;
      // As they stand, an attribute would have spaces for them.
      case '\t':
        xml += "&#9;";
        break;
      case '\r':
        xml += "&#13;";
        break;
      default:
        xml += c;
    }
  }
  return xml;
}

std::string to_junit(const Summary& summary, const Journal& journal, const std::string& folder,
                     const Conclusion& conclusion) {
  std::map<std::pair<std::string, std::string>, int> same_names;
  for (const KernelSummary& kernel : summary.kernels) ++same_names[{kernel.name, kernel.dtype}];
  std::vector<Suite> suites{suite_of_the_run(summary, journal, conclusion)};
  for (const KernelSummary& kernel : summary.kernels) {
    // Readers tell tests apart by their names.
    const std::string& name = same_names[{kernel.name, kernel.dtype}] > 1 ? kernel.id : kernel.name;
    Suite suite{.name = name + " " + kernel.dtype, .properties = {}, .cases = {}, .time = {}};
    suite.properties = {{"kernel", kernel.id}, {"dtype", kernel.dtype}};
    if (const std::string reach = reach_text(kernel); !reach.empty()) suite.properties.emplace_back("reach", reach);
    for (const KernelExplanation& one : kernel.explanations) suite.properties.emplace_back("explained", one.text);
    suite.output.clear();
    if (const std::optional<Counted> shapes = conclusion.of_shapes(kernel)) {
      const bool undecided = *shapes == Counted::undecided;
      suite.add(name + "." + kernel.dtype, "shapes", undecided ? "error" : "", undecided ? "inconclusive" : "",
                undecided ? "undecided: " + kernel.left_out : "");
    }
    for (const PropertySummary& property : kernel.properties)
      add_property(suite, name + "." + kernel.dtype, property, conclusion.of(kernel, property), folder);
    suites.push_back(std::move(suite));
  }
  std::int64_t tests = 0, failures = 0, errors = 0;
  std::string text;
  for (const Suite& suite : suites) {
    tests += suite.tests, failures += suite.failures, errors += suite.errors;
    text += text_of(suite, journal);
  }
  return fmt::format(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<testsuites name=\"attest\" tests=\"{}\" failures=\"{}\" errors=\"{}\"{}>\n",
             tests, failures, errors, time_attribute(suites.front().time)) +
         text + "</testsuites>\n";
}

}  // namespace attest
