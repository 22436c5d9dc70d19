// The report in a browser: every plot is drawn, nothing is complained of, nothing is fetched.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "core/journal/journal.h"
#include "properties/catalogue/property.h"
#include "reports/test/json.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// The page after its scripts have run, and what the browser logged, in page.dom and page.log.
const std::string opened_in_browser =
    "chromium --headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run --user-data-dir=profile --host-resolver-rules='MAP * ~NOTFOUND' "
    "--enable-logging=stderr "
    "--virtual-time-budget=8000 --dump-dom \"file://$PWD/page.html\" > page.dom 2> page.log";

TEST(Page, DrawsEveryPlotAndFetchesNothing) {
  const Folder folder;
  if (shell(folder, "command -v chromium").status != 0) GTEST_SKIP() << "Chromium is not installed";
  ASSERT_EQ(shell(folder,
                  "$attest check --kernel builtin:flash --kernel builtin:online --dtype f32,bf16 --property "
                  "attention.oracle --cases 300 --quiet --out run && $attest report run -o page.html")
                .status,
            0);
  const std::string page = read_file(folder / "page.html");
  if (page.find("built without Vega") != std::string::npos) GTEST_SKIP() << "the program was built without Vega";
  ASSERT_EQ(shell(folder, opened_in_browser).status, 0) << read_file(folder / "page.log");
  const std::string dom = read_file(folder / "page.dom"), log = read_file(folder / "page.log");
  EXPECT_EQ(count_of(page, "<figure class=\"plot\">"), 6U);
  EXPECT_EQ(count_of(dom, "data-drawn=\"yes\""), 6U) << log;
  EXPECT_GE(count_of(dom, "<svg"), 6U);
  // A script's error, and what the policy refused to load.
  EXPECT_EQ(log.find("CONSOLE"), std::string::npos) << log;
  EXPECT_EQ(count_of(page, "default-src 'none'"), 1U);
  // The test sees what it looks for: a page whose policy forbids its script draws nothing and says so.
  ASSERT_EQ(shell(folder, "sed -i \"s/; script-src 'nonce-[0-9a-f]*' 'unsafe-eval'//\" page.html").status, 0);
  ASSERT_EQ(shell(folder, opened_in_browser).status, 0);
  EXPECT_EQ(count_of(read_file(folder / "page.dom"), "data-drawn=\"yes\""), 0U);
  EXPECT_NE(read_file(folder / "page.log").find("CONSOLE"), std::string::npos);
}

/// Adds a script to page.html as the page's own, for it allows no other, and opens it. It runs once what was packed is
/// in its place.
void run_in_page(const Folder& folder, const std::string& script) {
  std::string page = read_file(folder / "page.html");
  const std::size_t nonce = page.find("'nonce-");
  ASSERT_NE(nonce, std::string::npos);
  page.insert(page.rfind("</body>"),
              "<script nonce=\"" + page.substr(nonce + 7, 32) + "\">const run = () => {" + script +
                  "};\nconst wait = () => document.documentElement.dataset.whole === 'yes' ? run() : "
                  "setTimeout(wait, 10);\nwait();</script>");
  write_file_atomically(folder / "page.html", page);
  ASSERT_EQ(shell(folder, opened_in_browser).status, 0) << read_file(folder / "page.log");
  EXPECT_EQ(read_file(folder / "page.log").find("CONSOLE"), std::string::npos) << read_file(folder / "page.log");
}

/// What the script left as an attribute of the body.
std::string left_by_script(const Folder& folder, const std::string& name) {
  const std::string dom = read_file(folder / "page.dom");
  const std::size_t at = dom.find(" data-" + name + "=\"", dom.find("<body"));
  if (at == std::string::npos) return "nothing";
  const std::size_t begin = at + name.size() + 8;
  return dom.substr(begin, dom.find('"', begin) - begin);
}

TEST(Page, SortsAndFiltersAViolatedRun) {
  const Folder folder;
  if (shell(folder, "command -v chromium").status != 0) GTEST_SKIP() << "Chromium is not installed";
  ASSERT_EQ(shell(folder,
                  "$attest check --kernel builtin:flash --kernel fault:bool-mask-inverted --dtype f32,bf16 --property "
                  "'masked.*' --cases 60 --quiet --out run; $attest report run -o page.html")
                .status,
            0);
  run_in_page(folder, R"js(
    const left = document.body.dataset;
    const folds = () => Array.from(document.querySelectorAll('details.folded'));
    const foldAll = open => { for (const fold of folds()) fold.open = open; };
    left.folds = folds().filter(fold => !fold.open).length;
    foldAll(true);
    const table = document.querySelector('#worst-cases table');
    const button = table.tHead.rows[0].cells[3].querySelector('button');
    const column = () => Array.from(table.tBodies[0].rows, row => row.cells[3].textContent).join(' ');
    button.click();
    left.down = table.tHead.rows[0].cells[3].getAttribute('aria-sort') + ' ' + column();
    button.click();
    left.up = table.tHead.rows[0].cells[3].getAttribute('aria-sort') + ' ' + column();
    left.focus = (button.focus(), String(document.activeElement === button));
    const [kernel, property] = document.querySelectorAll('.filter input');
    const verdict = document.querySelector('.filter select');
    const seen = selector => Array.from(document.querySelectorAll(selector)).filter(e => e.checkVisibility()).length;
    const counts = () => ['#findings article', '#evidence tbody tr', '#evidence thead th', '#kernels details.kernel']
      .map(seen).join(' ');
    const choose = (input, value) => { input.value = value; input.dispatchEvent(new Event('input')); };
    const steps = [
      ['all', () => {}],
      ['kernel', () => { foldAll(false); choose(kernel, 'FLASH'); }],
      ['both', () => choose(property, 'query-del')],
      ['cleared', () => document.querySelector('.filter button[type=reset]').click()],
      ['violated', () => choose(verdict, 'violated')]];
    (async () => {
      for (const [name, act] of steps) {
        act();
        await new Promise(done => setTimeout(done, 300));
        left[name] = counts();
      }
      left.said = document.querySelector('.shown').textContent;
    })();
  )js");
  const auto numbers_of = [&](const std::string& name, const std::string& direction) {
    std::string text = left_by_script(folder, name);
    EXPECT_EQ(text.substr(0, direction.size()), direction);
    std::vector<double> numbers;
    for (std::istringstream words(text.substr(direction.size())); words >> text;)
      numbers.push_back(text == "inf" ? INFINITY : std::stod(text));
    return numbers;
  };
  const std::vector<double> down = numbers_of("down", "descending"), up = numbers_of("up", "ascending");
  EXPECT_GT(down.size(), 10U);
  EXPECT_TRUE(std::ranges::is_sorted(down, std::greater()));
  EXPECT_TRUE(std::ranges::is_sorted(up));
  EXPECT_LT(up.front(), up.back());
  EXPECT_EQ(left_by_script(folder, "focus"), "true");
  const auto summary = summary_of(folder, "run");
  std::set<std::string> violated, all;
  std::size_t findings = 0;
  for (const auto& kernel : summary["kernels"]) {
    for (const auto& property : kernel["properties"]) {
      all.insert(property["name"]);
      if (property["verdict"] != "violated") continue;
      violated.insert(property["name"]);
      ++findings;
    }
  }
  ASSERT_GT(findings, 2U);
  ASSERT_LT(violated.size(), all.size());
  EXPECT_GT(std::stoi(left_by_script(folder, "folds")), 5) << "what is not read first; a filter unfolds it";
  const std::size_t deletions = 1;
  EXPECT_EQ(left_by_script(folder, "all"), fmt::format("{} {} 5 4", findings, all.size()));
  // No finding of a right kernel; of the columns those of one kernel.
  EXPECT_EQ(left_by_script(folder, "kernel"), fmt::format("0 {} 3 2", all.size()));
  EXPECT_EQ(left_by_script(folder, "both"), fmt::format("0 {} 3 2", deletions));
  EXPECT_EQ(left_by_script(folder, "cleared"), left_by_script(folder, "all"));
  EXPECT_EQ(left_by_script(folder, "violated"), fmt::format("{} {} 5 2", findings, violated.size()));
  EXPECT_NE(left_by_script(folder, "said").find(" rows and findings match"), std::string::npos);
}

/// page.html of a run that is compared with a baseline of more properties and cases.
void write_compared_page(const Folder& folder) {
  const std::string check =
      "$attest check --kernel builtin:flash --kernel fault:scale-ignored --dtype f32,bf16 --property attention.oracle "
      "--quiet --jobs 1 ";
  ASSERT_EQ(shell(folder, check + "--property attention.finite --cases 40 --out base > /dev/null").status, 1);
  ASSERT_EQ(shell(folder, check + "--cases 20 --out run > /dev/null").status, 1);
  ASSERT_EQ(shell(folder, "$attest report run --baseline base -o page.html").status, 0);
}

TEST(Page, SortsATableBelowHeadingsOfGroups) {
  const Folder folder;
  if (shell(folder, "command -v chromium").status != 0) GTEST_SKIP() << "Chromium is not installed";
  ASSERT_EQ(shell(folder,
                  "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f64,f32,bf16 --property "
                  "attention.oracle --cases 200 --quiet --out run && $attest report run -o page.html")
                .status,
            0);
  run_in_page(folder, R"js(
    const left = document.body.dataset;
    const table = document.querySelector('#tolerances table');
    const [groups, headings] = table.tHead.rows;
    left.groups = Array.from(groups.cells, cell => cell.colSpan + cell.textContent).join('|');
    const atol = Array.from(headings.cells).findIndex(cell => cell.textContent === 'atol');
    headings.cells[atol].querySelector('button').click();
    left.sorted = headings.cells[atol].getAttribute('aria-sort') + ' ' +
      Array.from(table.tBodies[0].rows, row => parseFloat(row.cells[atol].textContent)).join(' ');
    left.buttons = groups.querySelectorAll('button').length + ' ' + headings.querySelectorAll('button').length;
  )js");
  EXPECT_EQ(left_by_script(folder, "groups"), "2|5ordinary inputs|2all inputs");
  EXPECT_EQ(left_by_script(folder, "buttons"), "0 9");
  std::istringstream words(left_by_script(folder, "sorted"));
  std::string direction;
  words >> direction;
  EXPECT_EQ(direction, "descending");
  std::vector<double> sizes;
  for (double size = 0; words >> size;) sizes.push_back(size);
  EXPECT_EQ(sizes.size(), 6U);
  EXPECT_TRUE(std::ranges::is_sorted(sizes, std::greater()));
  EXPECT_GT(sizes.front(), 1000 * sizes.back());
}

TEST(Page, SortsAndFiltersWhatChanged) {
  const Folder folder;
  if (shell(folder, "command -v chromium").status != 0) GTEST_SKIP() << "Chromium is not installed";
  write_compared_page(folder);
  run_in_page(folder, R"js(
    const left = document.body.dataset;
    const table = document.querySelector('#changes table');
    const column = at => Array.from(table.tBodies[0].rows).filter(row => row.checkVisibility())
      .map(row => row.cells[at].textContent).join(' ');
    left.all = column(2);
    const button = table.tHead.rows[0].cells[2].querySelector('button');
    button.click();
    left.up = column(2);
    button.click();
    left.down = column(2);
    const [kernel, property] = document.querySelectorAll('.filter input');
    const choose = (input, value) => { input.value = value; input.dispatchEvent(new Event('input')); };
    (async () => {
      choose(kernel, 'scale-ignored f32');
      await new Promise(done => setTimeout(done, 300));
      left.kernel = column(1);
      choose(property, 'finite');
      await new Promise(done => setTimeout(done, 300));
      left.property = column(3);
    })();
  )js");
  // Of two kernels in two dtypes each, fewer cases than before, a property that is not checked any more, and shorter
  // cases held against the exact answer.
  EXPECT_EQ(left_by_script(folder, "all"), "bf16 bf16 f32 f32 bf16 bf16 f32 f32 bf16 f32 bf16 f32");
  EXPECT_EQ(left_by_script(folder, "up"), "bf16 bf16 bf16 bf16 bf16 bf16 f32 f32 f32 f32 f32 f32");
  EXPECT_EQ(left_by_script(folder, "down"), "f32 f32 f32 f32 f32 f32 bf16 bf16 bf16 bf16 bf16 bf16");
  EXPECT_EQ(left_by_script(folder, "kernel"), "fault:scale-ignored fault:scale-ignored fault:scale-ignored");
  // What is about no property stays.
  EXPECT_EQ(left_by_script(folder, "property"), " attention.finite ");
}

/// What an expression of the page's script says of it in a window of that width; numbers with a space between two.
std::vector<double> measured_in_window(const Folder& folder, int width, const std::string& expression) {
  std::string page = read_file(folder / "page.html");
  const std::size_t nonce = page.find("'nonce-");
  // A frame has the width that is asked for; a window of the browser would be 500 wide at least.
  page.insert(page.rfind("</body>"), "<script nonce=\"" + page.substr(nonce + 7, 32) + R"js(">
    const place = selector => document.querySelector(selector).getBoundingClientRect();
    const end = selector => place(selector).bottom;
    const tell = () => document.documentElement.dataset.whole !== 'yes' ? setTimeout(tell, 10) :
      parent.postMessage(()js" + expression +
                                         ").join(' '), '*');\n    tell();\n  </script>");
  write_file_atomically(folder / "framed.html", page);
  write_file_atomically(
      folder / "frame.html",
      fmt::format("<body><iframe src=\"framed.html\" style=\"width:{}px;height:800px;border:0\"></iframe>"
                  "<script>onmessage = e => document.body.dataset.ends = e.data</script>",
                  width));
  std::string open = opened_in_browser;
  open.replace(open.find("page.html"), 9, "frame.html");
  EXPECT_EQ(shell(folder, open).status, 0) << read_file(folder / "page.log");
  std::vector<double> numbers;
  std::istringstream text(left_by_script(folder, "ends"));
  for (double number = 0; text >> number;) numbers.push_back(number);
  EXPECT_TRUE(text.eof()) << left_by_script(folder, "ends") << read_file(folder / "page.log");
  return numbers;
}

/// Pixels from the top to where it ends, of what a reader came for, in a window of that width.
std::map<std::string, double> ends_in_window(const Folder& folder, int width) {
  const std::vector<double> numbers =
      measured_in_window(folder, width,
                         "['.headline', '#verdicts table', '#causes h3', '#causes dl', '#causes pre.line', "
                         "'#causes svg.map'].map(end)");
  std::map<std::string, double> ends;
  std::size_t i = 0;
  for (const char* const name : {"headline", "strip", "title", "words", "replay", "picture"})
    ends[name] = i < numbers.size() ? numbers[i++] : INFINITY;
  return ends;
}

/// Verdict, cause, when, input, found, right and what to type next; beside them, where there is room, the picture.
TEST(Page, AnswersOnTheFirstScreen) {
  const Folder folder;
  if (shell(folder, "command -v chromium").status != 0) GTEST_SKIP() << "Chromium is not installed";
  for (const char* const fault : {"interleaved-groups", "coarse-exp", "head-dim-in-eights", "bool-mask-inverted"}) {
    SCOPED_TRACE(fault);
    ASSERT_EQ(
        shell(folder, fmt::format("rm -rf run page.html; $attest check --kernel fault:{} --dtype f32,bf16 --cases "
                                  "200 --property 'attention.*' --quiet --out run; $attest report run -o page.html",
                                  fault))
            .status,
        0);
    const std::map<std::string, double> wide = ends_in_window(folder, 1300), phone = ends_in_window(folder, 390);
    for (const auto& [name, end] : wide) EXPECT_LE(end, 700) << name;
    for (const char* const name : {"headline", "strip", "title", "words", "replay"})
      EXPECT_LE(phone.at(name), 844) << name;
    // On the phone the picture stands below: the test sees what it looks for.
    EXPECT_GT(phone.at("picture"), phone.at("replay"));
    EXPECT_LT(wide.at("title"), wide.at("words"));
  }
}

/// Of a run that holds: the strip, the shapes that were judged and the tolerances.
TEST(Page, OfAHeldRunHasVerdictsShapesAndTolerancesOnTheFirstScreen) {
  const Folder folder;
  if (shell(folder, "command -v chromium").status != 0) GTEST_SKIP() << "Chromium is not installed";
  ASSERT_EQ(shell(folder,
                  "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f64,f32,f16,bf16 --cases 100 "
                  "--property 'attention.*' --quiet --out run && $attest report run -o page.html")
                .status,
            0);
  const char* const ends =
      "[...['.headline', '#verdicts table', '#tolerances table'].map(end), "
      "Math.max(...Array.from(document.querySelectorAll('#judged-shapes svg'), "
      "one => one.getBoundingClientRect().bottom))]";
  const std::vector<double> wide = measured_in_window(folder, 1300, ends);
  ASSERT_EQ(wide.size(), 4U);
  for (const double end : wide) EXPECT_LE(end, 700);
  // On a phone one sees at once what to copy: which columns end within the screen.
  const std::vector<double> phone = measured_in_window(
      folder, 390,
      "[document.documentElement.scrollWidth, ...Array.from(document.querySelectorAll('#tolerances tbody tr'))"
      ".flatMap(row => ['atol', 'rtol'].map(name => row.cells[Array.from(document.querySelectorAll('#tolerances thead "
      "tr:last-child th')).findIndex(one => one.textContent === name)].getBoundingClientRect().right))]");
  ASSERT_EQ(phone.size(), 17U);
  for (const double right : phone) EXPECT_LE(right, 390);
}

/// Each heading has words below its table that unfold, each number leads to its formula, and no word stands for two.
constexpr const char* const unexplained = R"js(
  const left = document.body.dataset, missing = [];
  for (const fold of document.querySelectorAll('details')) fold.open = true;
  let headings = 0, numbers = 0;
  for (const table of document.querySelectorAll('table')) {
    if (!table.tHead) continue;
    const words = table.closest('.scroll').nextElementSibling;
    const told = new Map(Array.from(words?.matches('details.columns') ? words.querySelectorAll('dt') : [],
      dt => [dt.textContent, dt.nextElementSibling]));
    for (const heading of table.tHead.rows[table.tHead.rows.length - 1].cells) {
      if (heading.textContent.trim() === '') continue;
      ++headings;
      const name = heading.dataset.about ?? heading.textContent.replace(/^[✓✗?–] /, '');
      const words_of_it = told.get(name);
      if (!words_of_it || !words_of_it.checkVisibility()) missing.push(name);
      if (!heading.classList.contains('number')) continue;
      ++numbers;
      const link = words_of_it?.querySelector('a');
      if (!link || !document.getElementById(link.hash.slice(1))) missing.push('the formula of ' + name);
    }
  }
  left.missing = missing.join(', ');
  left.headings = headings;
  left.numbers = numbers;
)js";

TEST(Page, ExplainsEveryColumnAndLeadsToTheFormulaOfEachNumber) {
  const Folder folder;
  if (shell(folder, "command -v chromium").status != 0) GTEST_SKIP() << "Chromium is not installed";
  write_file_atomically(folder / "audit.json",
                        R"json({"schema":"attest-audit/1","passed":false,"interrupted":false,"seed":7,
    "cases_per_fault":500,"check_cases":1000,"cases_of_short_check":200,"catchable":9,"caught":8,
    "control_cases_judged":1200,"control_cases_flagged":3,"not_caught":[],
    "kinds":[{"kind":"split","faults":9,"caught":8,"caught_by_short_check":7}]})json");
  const std::string check =
      "$attest check --kernel builtin:flash --kernel fault:scale-ignored --dtype f32,bf16 "
      "--property 'attention.*' --alarm --cases 60 --quiet ";
  ASSERT_EQ(shell(folder, check + "--out base > log").status, 1);
  ASSERT_EQ(shell(folder, check + "--seed 2 --out run > log").status, 1);
  ASSERT_EQ(shell(folder, "cp audit.json run && $attest report run --baseline base -o page.html").status, 0);
  run_in_page(folder, unexplained);
  EXPECT_EQ(left_by_script(folder, "missing"), "");
  EXPECT_GT(std::stoi(left_by_script(folder, "headings")), 100);
  EXPECT_GT(std::stoi(left_by_script(folder, "numbers")), 60);
  ASSERT_EQ(
      shell(folder, "$attest prove --property 'softmax.*' --out proofs > log && $attest report ./proofs -o page.html")
          .status,
      0)
      << read_file(folder / "log");
  run_in_page(folder, unexplained);
  EXPECT_EQ(left_by_script(folder, "missing"), "");
  EXPECT_GE(std::stoi(left_by_script(folder, "headings")), 8);
}

TEST(Page, IsPrintedUnfolded) {
  const Folder folder;
  if (shell(folder, "command -v chromium && command -v pdftotext").status != 0)
    GTEST_SKIP() << "Chromium or pdftotext is not installed";
  write_compared_page(folder);
  const auto printed = [&] {
    const ShellResult result =
        shell(folder,
              "chromium --headless=new --no-sandbox --disable-gpu --disable-background-networking --no-first-run "
              "--user-data-dir=profile --host-resolver-rules='MAP * ~NOTFOUND' --print-to-pdf=page.pdf "
              "\"file://$PWD/page.html\" > log 2>&1 && pdftotext page.pdf page.txt");
    EXPECT_EQ(result.status, 0) << result.output << read_file(folder / "log");
    return read_file(folder / "page.txt");
  };
  ASSERT_EQ(shell(folder, "cp page.html whole.html").status, 0);
  ASSERT_NE(read_file(folder / "page.html").find("<details><summary>manifest of builtin:flash</summary>"),
            std::string::npos);
  const char* const without_style = "sed -i 's/details::details-content/never/' page.html";
  const char* const without_script = "sed -i \"s/'beforeprint'/'never'/\" page.html";
  // The script does it alone, where a browser does not know the style, and the style where no script runs.
  for (const char* const without : {without_style, without_script}) {
    ASSERT_EQ(shell(folder, std::string("cp whole.html page.html && ") + without).status, 0);
    const std::string whole = printed();
    EXPECT_NE(whole.find("What changed"), std::string::npos);
    EXPECT_NE(whole.find("manifest of builtin:flash"), std::string::npos);
    EXPECT_NE(whole.find("fully_masked_row"), std::string::npos) << "what stands in the manifest; " << without;
  }
  // With neither what is folded is lost: the test sees what it looks for.
  ASSERT_EQ(shell(folder, without_style).status, 0);
  const std::string folded = printed();
  EXPECT_NE(folded.find("Environment"), std::string::npos);
  EXPECT_EQ(folded.find("fully_masked_row"), std::string::npos);
}

/// A journal of 10^5 batches: 10 of each of 100 properties, 20 kernels and 5 dtypes.
void write_large_journal(const std::filesystem::path& file) {
  std::string text = to_line(RunRecord{});
  std::vector<std::string> properties;
  for (const Property* property : catalogue())
    if (properties.size() < 100) properties.emplace_back(property->name);
  for (int kernel = 0; kernel < 20; ++kernel) {
    for (const char* dtype : {"f64", "f32", "f8_e4m3", "bf16", "f16"}) {
      for (const std::string& property : properties) {
        const Subject subject{property, fmt::format("exec:kernel {}", kernel), dtype};
        for (std::int64_t batch = 0; batch < 10; ++batch) {
          BatchRecord record{subject, 64 * batch, 64 * (batch + 1), {}, {}};
          Tally& tally = record.tally;
          for (std::int64_t k = record.first_k; k < record.last_k; ++k) {
            const double share = 1.0 / static_cast<double>(1 + (k * 37 + kernel) % 64);
            const bool off = kernel == 7 && property == "attention.oracle" && share == 1.0;
            tally.add(k,
                      {.outcome = off ? Outcome::violated : Outcome::held, .utilisation = off ? 3 : share, .level = 1});
          }
          text += to_line(record);
        }
      }
    }
  }
  std::ofstream(file, std::ios::binary) << stamped(text);
}

TEST(Page, OfAHundredThousandRecordsIsBoundedAndWhole) {
  const Folder folder;
  if (shell(folder, "command -v chromium").status != 0) GTEST_SKIP() << "Chromium is not installed";
  write_large_journal(folder / "large.jsonl");
  ASSERT_EQ(shell(folder, "test $(wc -l < large.jsonl) -eq 100001 && $attest report large.jsonl -o page.html").status,
            0);
  EXPECT_LT(std::filesystem::file_size(folder / "page.html"), 1'000'000U);
  EXPECT_NE(read_file(folder / "page.html").find("class=\"packed\""), std::string::npos);
  run_in_page(folder, R"js(
    const left = document.body.dataset, count = selector => document.querySelectorAll(selector).length;
    left.matrix = [count('#evidence tbody tr'), count('#evidence td'), count('#evidence td.violated')].join(' ');
    left.kernels = count('#kernels details.kernel');
  )js");
  EXPECT_EQ(left_by_script(folder, "matrix"), "100 10000 5");
  EXPECT_EQ(left_by_script(folder, "kernels"), "100");
}

}  // namespace
}  // namespace attest
