// Journals: refused in one line, or a journal whose canonical form is canonical and comes back from its text. Most of
// what an engine changes is refused for its checksum, so the same is asked of the text with checksums that are right.
// What is sound in either can be salvaged or is refused.
#include "core/journal/journal.h"
#include "core/support/errors.h"
#include "fuzz/targets/target.h"

namespace {

using namespace attest;

void read(std::string_view input, const JournalRules& rules) {
  try {
    const Journal journals[] = {parse_journal(input, "input", rules)};
    const std::string sources[] = {"input"};
    const std::string text = to_text(canonical(journals, sources));
    try {
      const Journal again[] = {parse_journal(text, "its canonical form")};
      require(to_text(canonical(again, sources)) == text, "a canonical journal has another canonical form");
      require(again[0].notes.empty(), "there is something to be said of a canonical journal");
    } catch (const UsageError& error) {
      require(false, error.what());
    }
    for (const std::string& note : journals[0].notes)
      require(note.find('\n') == std::string::npos, "a note of two lines");
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error of two lines");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = text_of(data, size);
  for (const bool salvage : {false, true}) {
    read(input, {.salvage = salvage});
    read(stamped(input), {.salvage = salvage});
  }
  return 0;
}
