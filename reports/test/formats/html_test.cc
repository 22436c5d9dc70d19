// The report's page, section by section, from journals made here.
#include "reports/formats/html.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "core/problem/case.h"
#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/test/places.h"
#include "reports/page/print.h"
#include "reports/results/tolerance.h"
#include "reports/run_folder/run_folder.h"
#include "reports/sections/audit_score.h"
#include "reports/sections/sections.h"
#include "reports/test/fakes.h"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string evil = "</td><script>alert(\"x\")</script>'&";

std::string number_cell(std::string_view number) {
  return fmt::format("<td class=\"number\">{}</td>", number);
}

Tally tally(std::int64_t held, std::int64_t violated = 0, std::int64_t skipped = 0) {
  Tally result;
  std::int64_t k = 0;
  for (std::int64_t i = 0; i < held; ++i) result.add(k++, {.utilisation = 0.25});
  for (std::int64_t i = 0; i < violated; ++i)
    result.add(k++, {.outcome = Outcome::violated, .utilisation = 3, .reason = "off"});
  for (std::int64_t i = 0; i < skipped; ++i) result.add(k++, {.outcome = Outcome::skipped, .reason = "has 9 keys"});
  return result;
}

/// From behind `begin` to before `end`.
std::string part_of(const std::string& html, const std::string& begin, const std::string& end) {
  const std::size_t from = html.find(begin);
  if (from == std::string::npos) return {};
  return html.substr(from + begin.size(), html.find(end, from + begin.size()) - from - begin.size());
}

/// Without its elements.
std::string plain(const std::string& html) {
  std::string text;
  bool inside = false;
  for (const char c : html) {
    if (c == '<') inside = true;
    if (!inside) text += c;
    if (c == '>') inside = false;
  }
  return text;
}

std::size_t count_in(const std::string& html, const std::string& words) {
  std::size_t count = 0;
  for (std::size_t at = html.find(words); at != std::string::npos; at = html.find(words, at + 1)) ++count;
  return count;
}

Journal journal_of(const std::vector<std::pair<Subject, Tally>>& batches) {
  Journal journal;
  journal.run = RunRecord{};
  journal.meta.push_back({"end", {}});
  for (const auto& [subject, one] : batches) journal.batches.push_back({subject, 0, one.cases(), {}, one});
  return journal;
}

std::string page_of(const Journal& journal, const std::string& folder = "") {
  return html_page(summarise(journal, folder), journal, folder, conclude(summarise(journal, folder)));
}

std::string section_of(Blocks (*section)(const Reported&), const Journal& journal, const std::string& folder = "") {
  return html_of(section({summarise(journal, folder), journal, folder, {}}));
}

constexpr const char* audit_text =
    R"json({"schema":"attest-audit/1","passed":false,"interrupted":false,"seed":7,"cases_per_fault":500,"catchable":86,
    "caught":85,"control_cases_judged":1200,"control_cases_flagged":3,"not_caught":["fault:</td><script>"]})json";

TEST(Page, OfProofsAloneSpeaksOfProofs) {
  Journal journal = journal_of({});
  journal.proofs = {{"attention.oracle", "tested", "core:double", ""},
                    {"causal.no-leak", "symbolic", "the core's templates at 1 shape, 2,2,2,1,1: all real inputs", ""},
                    {"causal.no-leak", "coq-all-shapes", "a model", ""},
                    {"masked.zero-mask", "coq-all-shapes", "a model", ""}};
  const std::string page = page_of(journal);
  EXPECT_THAT(page, HasSubstr("<title>Attest: proofs</title>"));
  const auto headline = [&] { return plain(part_of(page_of(journal), "<p class=\"headline\">", "</p>")); };
  EXPECT_EQ(headline(),
            "3 properties over the real numbers: ✓ 2 proved for all shapes, – 1 only tested. No kernel was run.");
  // The table says the same of each property, in the same words.
  EXPECT_EQ(count_in(page, "</span> proved for all shapes</span></td>"), 2U);
  EXPECT_EQ(count_in(page, "</span> only tested</span></td>"), 1U);
  EXPECT_THAT(page, HasSubstr("<section id=\"evidence\">"));
  for (const char* of_kernels :
       {"</span> skipped</span>", "0 cases", "id=\"verdicts\"", "id=\"findings\"", "id=\"kernels\""})
    EXPECT_THAT(page, Not(HasSubstr(of_kernels)));
  journal.proofs.push_back({"masked.zero-mask", "DIFFERENT", "the core's templates at 1 shape", ""});
  EXPECT_THAT(headline(), HasSubstr("numbers: ✗ 1 contradicted, ✓ 1 proved for all shapes, – 1 only tested"));
  journal.proofs.back().level = "refuted";
  journal.proofs.erase(journal.proofs.begin() + 3);
  // What theorems.md lists as false is to be refuted.
  EXPECT_THAT(headline(), HasSubstr("✓ 1 refuted, as it should be"));
  EXPECT_THAT(page_of(journal), Not(HasSubstr("class=\"violated\"")));
  EXPECT_THAT(page_of(journal), Not(HasSubstr("badge violated")));
  journal.proofs.back() = {"masked.zero-mask", "coq-not-compiled", "a model", ""};
  EXPECT_THAT(page_of(journal), HasSubstr(">not compiled here</td>"));
  // Where a kernel was run its verdict leads.
  journal.batches = journal_of({{{"attention.oracle", "builtin:flash", "f32"}, tally(3)}}).batches;
  EXPECT_THAT(page_of(journal), HasSubstr("<title>Attest: held</title>"));
}

TEST(Page, SaysOfWhichCaseAUtilisationIs) {
  const fake::Folder folder;
  const Subject subject{"attention.oracle", "builtin:bad", "f32"};
  Journal journal = journal_of({{subject, tally(1, 1)}});
  Case c;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = Tensor(DType::f32, {1, 1, 1, 1});
  for (const bool shrunk : {true, false}) {
    if (shrunk) c.provenance.shrunk = "yes";
    std::filesystem::create_directory(folder / "cases");
    save_case(c, folder / "cases/k.safetensors");
    journal.findings = {{subject,
                         1,
                         "cases/k.safetensors",
                         {.outcome = Outcome::violated, .violation = Violation::bound, .utilisation = 226}}};
    const std::string page = page_of(journal, folder.path().string());
    EXPECT_THAT(page, HasSubstr(shrunk ? "utilisation 226 once shrunk</p>" : "utilisation 226</p>"));
    EXPECT_THAT(page,
                HasSubstr("1 of 2 cases; worst utilisation of the cases as drawn 3, of the saved ones below.</p>"));
    c.provenance.shrunk.reset();
  }
}

TEST(Page, HasItsSectionsInOrderAndALinkToEach) {
  Journal journal = journal_of({{{"attention.oracle", "builtin:flash", "f32"}, tally(3)}});
  journal.proofs.push_back({"attention.oracle", "tested", "core:double", ""});
  const std::string page = page_of(journal);
  std::size_t at = 0;
  for (const char* id : {"verdicts", "coverage", "findings", "evidence", "kernels", "worst-cases", "oracle",
                         "environment", "not-covered", "numbers"}) {
    const std::size_t next = page.find(std::string("<section id=\"") + id + "\">");
    ASSERT_NE(next, std::string::npos) << id;
    EXPECT_GT(next, at) << id;
    at = next;
    EXPECT_THAT(page, HasSubstr(std::string("<a href=\"#") + id + "\">"));
  }
  // Controls come with the script; without it nothing stands there that does nothing.
  const std::string body = page.substr(page.find("<body>"), page.find("<script") - page.find("<body>"));
  for (const char* control : {"<button", "<input", "<form", " hidden"}) EXPECT_THAT(body, Not(HasSubstr(control)));
  // What has nothing to say is not there.
  EXPECT_THAT(page, Not(HasSubstr("<section id=\"tolerances\">")));
  EXPECT_THAT(page, Not(HasSubstr("href=\"#search\"")));
}

TEST(Verdicts, CountWhatWasAskedAndTheCasesBehindIt) {
  const Journal journal = journal_of({{{"attention.oracle", "a", "f32"}, tally(30)},
                                      {{"attention.repeatable", "a", "f32"}, tally(5, 2, 1)},
                                      {{"masked.query-deletion", "a", "f32"}, tally(0, 0, 62)}});
  const std::string html = section_of(coverage_page, journal);
  const auto row = [](const char* name, std::initializer_list<const char*> numbers) {
    std::string text = std::string("<th scope=\"row\">") + name + "</th>";
    for (const char* number : numbers) text += number_cell(number);
    return text;
  };
  EXPECT_THAT(html, HasSubstr("<thead><tr><td></td><th scope=\"col\"><span class=\"badge held\">"));
  EXPECT_THAT(html, HasSubstr(row("properties × kernels × dtypes", {"1", "1", "0", "–"})));
  EXPECT_THAT(html, HasSubstr(row("cases", {"35", "2", "0", "0"}))) << "what is ruled out is not counted";
  EXPECT_THAT(html, HasSubstr("Applies: 2 of 3 properties. Covered: 3 of the catalogue&#39;s"));
  EXPECT_THAT(
      html,
      HasSubstr("a case was judged for 2 of the 2 properties × kernels × dtypes that the manifests offer, and 100 % of "
                "the cases"));
}

TEST(Coverage, CountsNoCaseThatCannotApply) {
  Journal journal = journal_of({{{"attention.oracle", "a", "f32"}, tally(30, 0, 777)},
                                {{"masked.query-deletion", "a", "f32"}, tally(0, 0, 1237)}});
  const std::string kernels = section_of(kernels_page, journal);
  std::string page = page_of(journal);
  // Of the page a part may be packed.
  for (Blocks (*const section)(const Reported&) : {coverage_page, kernels_page, evidence_page, uncovered_page})
    page += section_of(section, journal);
  // Its nonce is 32 random digits, and may hold any of these.
  for (std::size_t at = 0; (at = page.find("nonce", at)) != std::string::npos;) page.erase(at, 7 + 32);
  for (const char* const skipped : {"1237", "777", "2014"}) EXPECT_THAT(page, Not(HasSubstr(skipped)));
  EXPECT_THAT(part_of(page, "<p class=\"headline\">", "</p>"), HasSubstr("Applies: 1 of 2 properties."));
  EXPECT_THAT(kernels, HasSubstr("Applies: 1 of 2 properties; why no others: <a href=\"#not-covered\">"));
  EXPECT_THAT(kernels, Not(HasSubstr("masked.query-deletion")));
  EXPECT_THAT(page, HasSubstr("skipped: has N keys")) << "why it does not is told";
}

TEST(ByKernel, SaysHowFarTheOracleJudged) {
  Journal journal =
      journal_of({{{"attention.oracle", "a", "f32"}, tally(3)}, {{"masked.row-shift", "b", "f32"}, tally(3)}});
  journal.batches[0].tally.reach = Reach{320, 8192, 256, 64, 8, 2, 1};
  const std::string kernels = section_of(kernels_page, journal);
  EXPECT_THAT(kernels, HasSubstr("Reach: M 320, N 8192, dk 256, 8 heads (the largest M, N, dk"));
  EXPECT_THAT(kernels, HasSubstr("<td>M 320, N 8192, dk 256, 8 heads</td></tr>"));
  EXPECT_THAT(kernels, HasSubstr("<td>–</td></tr>"));
}

/// A tally of one case whose errors were measured.
Tally measured(double worst_normal, double worst_subnormal) {
  ErrorSample sample;
  sample.keys = 20, sample.elements = 1, sample.worst_normal = worst_normal, sample.worst_subnormal = worst_subnormal;
  sample.worst_utilisation = std::max(worst_normal, worst_subnormal);
  sample.worst_error = 5e32, sample.worst_ulp = 7e30, sample.scaled_error = 1.25;
  ++sample.histogram[0][utilisation_bin(sample.worst_utilisation)];
  Tally one;
  one.add(0, {.utilisation = sample.worst_utilisation, .errors = std::make_shared<ErrorSample>(sample)},
          "scores:gaussian mask:none scale:inverse-root values:gaussian shape:small");
  return one;
}

TEST(Verdicts, AndTolerancesHaveOneWorstShareWithSubnormalRoundingApart) {
  const Journal journal = journal_of({{{"attention.oracle", "a", "f16"}, measured(0.375, 0.96875)},
                                      {{"attention.any-length", "a", "f16"}, tally(3)},
                                      {{"attention.oracle", "b", "f16"}, measured(0.875, 0)}});
  const Summary summary = summarise(journal, "");
  const std::string strip = section_of(verdicts_page, journal);
  EXPECT_THAT(strip, HasSubstr("<span class=\"figure\">0.375</span>"));
  EXPECT_THAT(strip, HasSubstr("<span class=\"figure\">0.875</span>"));
  EXPECT_THAT(strip, Not(HasSubstr("0.969")));
  const std::string tolerances = html_of(tolerances_page(tolerance_rows(summary, journal), summary)),
                    errors = section_of(errors_page, journal);
  for (const std::string& html : {tolerances, errors}) {
    EXPECT_THAT(html, HasSubstr(number_cell("0.375") + number_cell("0.969")));
    EXPECT_THAT(html, HasSubstr(number_cell("0.875") + number_cell("–")));
  }
  // Of all inputs no absolute error, and nothing in units that cancelling makes as large as one likes.
  EXPECT_THAT(errors, Not(HasSubstr("e+3")));
  EXPECT_THAT(errors, HasSubstr(number_cell("1.25")));
}

TEST(Verdicts, OfManyKernelsAreFoldedButForTheWorst) {
  std::vector<std::pair<Subject, Tally>> batches;
  batches.reserve(9);
  for (int i = 0; i < 9; ++i)
    batches.push_back({{"attention.oracle", fmt::format("kernel-{}", i), "f32"}, i == 7 ? tally(1, 1) : tally(30)});
  const std::string html = section_of(verdicts_page, journal_of(batches));
  const std::size_t fold = html.find("<summary>Further kernels:");
  ASSERT_NE(fold, std::string::npos);
  EXPECT_LT(html.find("kernel-7"), html.find("kernel-0"));
  EXPECT_LT(html.find("kernel-3"), fold);
  EXPECT_GT(html.find("kernel-4"), fold);
  EXPECT_THAT(html.substr(fold), HasSubstr("4 held"));
  batches.resize(6);
  EXPECT_THAT(section_of(verdicts_page, journal_of(batches)), Not(HasSubstr("Further kernels")));
}

TEST(Verdicts, HaveTheSuitesOwnScoreWhereItWasMeasured) {
  const fake::Folder folder;
  EXPECT_EQ(html_of(audit_page("")), "");
  EXPECT_THAT(html_of(audit_page(folder.path())), HasSubstr("attest audit --out"));
  write_file_atomically(folder / "audit.json", audit_text);
  const std::string html = html_of(coverage_page({{}, {}, folder.path().string(), {}}));
  EXPECT_THAT(html, HasSubstr("<b>85 of 86</b> planted faults caught within 500 cases each, all but "
                              "fault:&lt;/td&gt;&lt;script&gt;; <b>3 of 1200</b> cases"));
  EXPECT_THAT(html, testing::Not(HasSubstr("kind of fault"))) << "an earlier version's";
  const std::string score = std::string(audit_text).insert(1, R"("check_cases":1000,"cases_of_short_check":200,"kinds":[
    {"kind":"split<","faults":9,"caught":8,"caught_by_short_check":7}],)");
  const std::string of_kinds = html_of(audit_page(parse_audit_score(score, "it")));
  EXPECT_THAT(of_kinds, HasSubstr("within 500 cases each, or the first 1000 of each property"));
  EXPECT_THAT(of_kinds, HasSubstr("by 200 cases of a property"));
  EXPECT_THAT(of_kinds, HasSubstr("split&lt;"));
  for (const std::string& text : {std::string("{}"), std::string("["), std::string(R"({"schema":"attest-audit/2"})"),
                                  std::string(score).replace(score.find(":85"), 3, ":1e300"),
                                  std::string(score).replace(score.find(":85"), 3, ":-85"),
                                  std::string(score).replace(score.find(":9,"), 3, ":-9,")}) {
    try {
      (void)parse_audit_score(text, "it");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("it: "));
    }
  }
}

/// A run's folder with a finding of the oracle: of two keys, both values 1, the kernel says NaN for the second row.
Journal violated_run(const fake::Folder& folder, const std::string& kernel) {
  Case c;
  c.scale = 0.5;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
    c[slot] = Tensor(DType::f32, {1, 1, 2, 1});
    for (std::int64_t i = 0; i < 2; ++i) c[slot].set(i, slot == Slot::q ? 0.1 : 1.0);
  }
  c.provenance.shrunk = "yes";
  std::filesystem::create_directories(folder / "cases");
  save_case(c, folder / "cases/one.safetensors");
  Journal journal = journal_of({{{"attention.oracle", kernel, "f32"}, tally(1, 2)}});
  journal.kernels.push_back({kernel, R"({"name": "mine", "dtypes": ["f32"], "fully_masked_row": "nan"})", ""});
  journal.findings.push_back(
      {journal.batches[0].subject,
       17,
       "cases/one.safetensors",
       {.outcome = Outcome::violated,
        .violation = Violation::not_finite,
        .utilisation = INFINITY,
        .error = INFINITY,
        .allowed = 0.5,
        .element = 1,
        .reason = "out is " + evil},
       {{.shape = {1, 1, 2, 1}, .element = 1, .keys = 2, .found = NAN, .exact = Enclosure{1, 1}}}});
  return journal;
}

TEST(Findings, ShowTheCaseTheExactAnswerAndWhereTheFirstNaNIs) {
  const fake::Folder folder;
  const Journal journal = violated_run(folder, "exec:mine");
  const std::string html = section_of(findings_page, journal, folder.path().string());
  EXPECT_THAT(html, HasSubstr("2 of 3 cases; worst utilisation of the cases as drawn 3, of the saved ones below."));
  EXPECT_THAT(html, HasSubstr("<b>Case 17</b>, non-finite, utilisation inf"));
  EXPECT_THAT(html, HasSubstr("<dt>found</dt><dd>out is " + escaped(evil)));
  EXPECT_THAT(html,
              HasSubstr("<dt>first NaN or Inf</dt><dd>out[0, 0, 1, 0] of a call with 2 keys: found nan (nan), exact "
                        "[1 (0x1p+0), 1 (0x1p+0)]</dd>"));
  EXPECT_THAT(html, HasSubstr("<details open><summary>Shrunk case: attention, scale 0.5 (0x1p-1)"));
  // The nearest float to a tenth, in its own decimals and exactly.
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">q</th><td>f32 [1, 1, 2, 1]</td><td><code>0.1, 0.1</code></td><td>"
                              "<code>0x1.99999ap-4, 0x1.99999ap-4</code></td>"));
  EXPECT_THAT(html, HasSubstr("attest replay " + folder.path().filename().string() + "/cases/one.safetensors"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  // Without the file, what is known without it.
  const std::string bare = section_of(findings_page, journal);
  EXPECT_THAT(bare, HasSubstr("<b>Case 17</b>"));
  EXPECT_THAT(bare, Not(HasSubstr("Shrunk case")));
}

TEST(Findings, OfALawShowBothSidesAndWhatIsExactThere) {
  const fake::Folder folder;
  Journal journal = violated_run(folder, "exec:mine");
  journal.findings[0].compared = {
      {.shape = {1, 1, 2, 3}, .element = 4, .keys = 1, .found = 0.25, .exact = Enclosure{0.5, 0.75}},
      {.shape = {2, 3}, .element = 5, .keys = 7, .found = -1}};
  const std::string html = section_of(findings_page, journal);
  EXPECT_THAT(html, HasSubstr("<dt>one side</dt><dd>out[0, 0, 1, 1] of a call with 1 key: found 0.25 (0x1p-2), exact "
                              "[0.5 (0x1p-1), 0.75 (0x1.8p-1)]</dd>"));
  EXPECT_THAT(html, HasSubstr("<dt>other side</dt><dd>out[1, 2] of a call with 7 keys: found -1 (-0x1p+0)</dd>"));
  EXPECT_THAT(html, Not(HasSubstr("first NaN")));
  journal.findings[0].compared.resize(1);
  EXPECT_THAT(section_of(findings_page, journal), HasSubstr("<dt>where</dt><dd>out[0, 0, 1, 1] of a call"));
}

TEST(Findings, CutLongTensorsAndCountTheRest) {
  const fake::Folder folder;
  const Journal journal = violated_run(folder, "exec:mine");
  Case c = load_case(folder / "cases/one.safetensors");
  for (const Slot slot : {Slot::k, Slot::v}) c[slot] = Tensor(DType::f32, {1, 1, 1000, 1});
  save_case(c, folder / "cases/one.safetensors");
  const std::string html = section_of(findings_page, journal, folder.path().string());
  EXPECT_THAT(html, HasSubstr(", … and 952 more of 1000</code>"));
  EXPECT_LT(html.size(), 6000U);
}

TEST(Findings, AreCardsThenLinesThenACount) {
  Journal journal;
  journal.run = RunRecord{};
  journal.meta.push_back({"end", {}});
  for (int i = 0; i < 400; ++i) {
    const Subject subject{fmt::format("p{:03}", i), "<b>", "f32"};
    journal.batches.push_back({subject, 0, 2, {}, tally(0, 2)});
    for (std::int64_t k = 0; k < 2; ++k)
      journal.findings.push_back({subject, k, "cases/x", {.outcome = Outcome::violated, .reason = "off"}});
  }
  const std::string html = section_of(findings_page, journal);
  const auto count = [&](const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = html.find(word); at != std::string::npos; at = html.find(word, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<div class=\"finding\">"), 60U);
  EXPECT_EQ(count("<details class=\"line\">"), 600U);
  EXPECT_THAT(html, HasSubstr("<p>140 further findings are in"));
  EXPECT_EQ(count("<b>f32"), 0U);
  EXPECT_EQ(count("<th scope=\"row\">&lt;b&gt;</th>"), 600U);
}

TEST(Tolerances, ToCopyAreThoseOfOrdinaryInputsWithWhatTheyLetPass) {
  ToleranceRow whole;
  whole.kernel = "exec:" + evil, whole.name = evil, whole.dtype = "f32", whole.accumulate = evil;
  whole.cell.cases = 40, whole.cell.worst_k = 7, whole.cell.worst_error = code_of(0x1p111);
  whole.tolerance = {.atol = 5e32, .rtol = 0.5};
  ToleranceRow ordinary = whole;
  ordinary.values = "ordinary", ordinary.cell.cases = 90, ordinary.long_cases = 20;
  ordinary.cell.worst_error = code_of(0.125), ordinary.cell.worst_scaled = code_of(2.5);
  ordinary.tolerance = {.atol = 1.5e-6, .rtol = 2.4e-7};
  ordinary.missed = {"late-scale", "index-wraps"}, ordinary.missed_of = 61;
  ToleranceRow bare = whole;
  bare.name = bare.kernel = "builtin:flash";
  const std::string html = html_of(tolerances_page({whole, ordinary, bare}, {}));
  EXPECT_THAT(html, HasSubstr("<td>f32</td>" + number_cell("1.5e-06") + number_cell("2.4e-07") +
                              "<td><details class=\"line\"><summary>2 of 61</summary><code class=\"line\">late-scale, "
                              "index-wraps</code></details></td>" +
                              number_cell("0.125") + number_cell("2.5")))
      << "the tolerance stands first";
  EXPECT_THAT(html, HasSubstr("<summary>–</summary><span>no judged case was ordinary</span>"));
  bare.case_files = {"mine.safetensors"};
  EXPECT_THAT(html_of(tolerances_page({bare}, {})), HasSubstr(number_cell("5e+32") + number_cell("0.5")))
      << "captured cases are what their owner meets";
  EXPECT_THAT(html, Not(HasSubstr("e+3"))) << "of all inputs nothing absolute";
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("too few to rely on")));
  ordinary.long_cases = 9;
  EXPECT_THAT(html_of(tolerances_page({whole, ordinary}, {})),
              HasSubstr("<summary>1.5e-06 ?</summary><span>from 90 ordinary cases, 9 of more than 64 keys: too few to "
                        "rely on</span>"));
  Summary summary;
  KernelSummary kernel;
  kernel.id = whole.kernel, kernel.dtype = "f32", kernel.verdict = Outcome::violated;
  summary.kernels.push_back(kernel);
  const std::string wrong = html_of(tolerances_page({whole, ordinary}, summary));
  EXPECT_THAT(wrong, Not(HasSubstr("1.5e-06")));
  EXPECT_THAT(wrong, HasSubstr("of a kernel that is violated none is suggested"));
}

TEST(Errors, AreByClassOfCaseToo) {
  const Journal journal = journal_of({{{"attention.oracle", evil, "f16"}, measured(0.375, 0.5)}});
  const std::string html = section_of(errors_page, journal);
  EXPECT_THAT(html, HasSubstr("<td>ordinary</td><th scope=\"row\">all</th>" + number_cell("1")));
  EXPECT_THAT(html, HasSubstr("<td>values</td><th scope=\"row\">gaussian</th>"));
  EXPECT_THAT(html, HasSubstr("<td>keys</td><th scope=\"row\">17..64 keys</th>"));
  EXPECT_THAT(html, HasSubstr(escaped(evil)));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST(WorstCases, AreThoseWithTheLargestUtilisation) {
  Summary summary;
  KernelSummary& kernel = summary.kernels.emplace_back();
  kernel.id = "exec:x", kernel.name = evil, kernel.dtype = "f32";
  for (int i = 0; i < 501; ++i) {
    PropertySummary& property = kernel.properties.emplace_back();
    property.name = fmt::format("p{}", i), property.worst_case = "cases/" + property.name;
    property.tally.add(i, {.utilisation = i == 77 ? 0.125 : 0.5});
  }
  kernel.properties[0].worst_case.clear();
  EXPECT_THAT(html_of(worst_cases_page({summary, {}, "run", {}})), HasSubstr("<td>p77</td>"));
  kernel.properties[0].worst_case = "cases/p0";
  const std::string html = html_of(worst_cases_page({summary, {}, "run", {}}));
  EXPECT_THAT(html, Not(HasSubstr("<td>p77</td>")));
  EXPECT_THAT(html, HasSubstr("1 more of smaller utilisation"));
  EXPECT_THAT(html, HasSubstr("<summary>case 78</summary><code class=\"line\">attest replay run/cases/p78</code>"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST(Evidence, IsTheStrongestOfEachPropertyAndKernel) {
  const fake::Folder folder;
  Journal journal = violated_run(folder, "exec:" + evil);
  Tally many = tally(1);
  many.held = 12'345'678;
  journal.batches.push_back({{"attention.oracle", "builtin:flash", "f32"}, 0, many.cases(), {}, many});
  journal.batches.push_back({{"attention.one-key", "core:arb", "f64"}, 0, 4, {}, tally(4)});
  journal.batches.push_back({{"attention.repeatable", "builtin:flash", "f32"}, 0, 3, {}, tally(0, 0, 3)});
  journal.batches.push_back({{evil, "builtin:flash", "f32"}, 0, 9, {}, tally(9)});
  const std::string at = "the core's templates at 16 shapes, 2,2,2,1,1 to 3,3,2,2,2: all real inputs";
  journal.proofs = {{"attention.one-key", "tested", "core:double", ""},
                    {"attention.one-key", "symbolic", at, evil},
                    {"attention.one-key", "coq-all-shapes", "a model", "attention_one_key"},
                    {"attention.oracle", "refuted", "the false statement: a witness", ""},
                    {"attention.strides", "abstract", "the core's templates at 2,2,2,1,1: by signs alone", ""},
                    {"attention.finite", "DIFFERENT", "the core's templates", ""},
                    {"attention.finite", "symbolic", at, ""}};
  const std::string html = section_of(evidence_page, journal);
  const auto row = [&](const std::string& property) {
    const std::size_t begin = html.find("<th scope=\"row\">" + escaped(property) + "</th>");
    return begin == std::string::npos ? std::string() : html.substr(begin, html.find("</tr>", begin) - begin);
  };
  EXPECT_THAT(row("attention.one-key"), HasSubstr(">proved for all shapes</td>"));
  EXPECT_THAT(row("attention.one-key"), HasSubstr(">proved for small shapes up to 3,3,2,2,2</td><td></td>"));
  EXPECT_THAT(row("attention.one-key"),
              HasSubstr("title=\"the enclosures of both sides meet in 4 cases\">✓ enclosed 4<"));
  EXPECT_THAT(row("attention.one-key"), HasSubstr(escaped(evil)));
  EXPECT_THAT(row("attention.strides"), HasSubstr(">by signs or dependence at 2,2,2,1,1</td>"));
  EXPECT_THAT(row("attention.finite"),
              HasSubstr("<td class=\"violated\" title=\"the core&#39;s templates\">contradicted"));
  EXPECT_THAT(row("attention.oracle"),
              HasSubstr("<td class=\"held\" title=\"the false statement: a witness\">refuted, as it"));
  EXPECT_THAT(row("attention.oracle"), HasSubstr("title=\"held on 12345678 cases\">✓ 12.3M</td>"));
  EXPECT_THAT(row("attention.oracle"), HasSubstr("violated by 2 of 3 judged cases, refuted by case 17"));
  EXPECT_THAT(row("attention.oracle"), HasSubstr("\">✗ 2</a></td>"));
  EXPECT_THAT(row("attention.repeatable"), HasSubstr("<td class=\"skipped\" title=\"skipped: has N keys"));
  EXPECT_THAT(row(evil), HasSubstr("✓ 9"));
  EXPECT_THAT(html, HasSubstr("All 7 lines of evidence behind it"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_EQ(html_of(evidence_page({{}, {}, "", {}})), "");
  // Each link has its place.
  const std::string page = page_of(journal);
  for (std::size_t from = page.find("href=\"#"); from != std::string::npos; from = page.find("href=\"#", from + 1)) {
    const std::string id = page.substr(from + 7, page.find('"', from + 7) - from - 7);
    EXPECT_THAT(page, HasSubstr(" id=\"" + id + "\"")) << id;
  }
}

TEST(FolderWithCases, IsTheOnlyOneThatHasSome) {
  const fake::Folder folder;
  for (const char* name : {"proofs/cases", "one/cases", "two/cases", "bare"})
    std::filesystem::create_directories(folder / name);
  write_file_atomically(folder / "one/cases/x", "x");
  write_file_atomically(folder / "two/cases/x", "x");
  EXPECT_EQ(folder_with_cases({folder / "bare"}), folder / "bare");
  EXPECT_EQ(folder_with_cases({folder / "proofs", folder / "one", folder / "bare"}), folder / "one");
  EXPECT_EQ(folder_with_cases({folder / "one", folder / "two"}), "");
  EXPECT_EQ(folder_with_cases({folder / "proofs", folder / "bare"}), "");
}

TEST(NotCovered, NamesWhatWasNotAskedNotStartedAndNotJudged) {
  Tally drawn = tally(30);
  drawn.drawn = {{"scores:zeros", 30}, {"mask:none", 30}};
  Journal journal = journal_of({{{"attention.oracle", "a", "f32"}, drawn}, {{evil, evil, "f32"}, tally(0, 0, 4)}});
  journal.batches[1].tally.reasons = {{{Outcome::skipped, evil}, 4}};
  journal.kernels.push_back({"exec:" + evil, "", "no such " + evil});
  const std::string html = section_of(uncovered_page, journal);
  EXPECT_THAT(html,
              HasSubstr("<dt>not started</dt><dd>" + escaped("exec:" + evil) + ": " + escaped("no such " + evil)));
  EXPECT_THAT(html, HasSubstr("masked.query-deletion"));
  EXPECT_THAT(html, Not(HasSubstr("attention.oracle,")));
  EXPECT_THAT(html, HasSubstr("mask:padding"));
  EXPECT_THAT(html, Not(HasSubstr("mask:none")));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">" + escaped(evil) + "</th><td>" + escaped(evil) + " f32</td><td>" +
                              escaped("skipped: " + evil) + "</td>"));
  EXPECT_THAT(html, Not(HasSubstr("that the manifests offer were not judged"))) << "they offer none that was not";
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("No run covers " + std::string(no_run_covers) + ". "));
}

// The page says so of each run, and README of the project.
TEST(NotCovered, IsWhatTheReadmeSays) {
  const std::string readme = read_file(source_folder() + "/README.md");
  EXPECT_THAT(readme, HasSubstr("Not covered: " + std::string(no_run_covers) + "."));
}

}  // namespace
}  // namespace attest
