// Programs that are killed at random moments, and what has to be true of what they leave.
#pragma once

#include <filesystem>
#include <ostream>
#include <random>
#include <set>
#include <string>

#include "reports/test/shell.h"

namespace attest {

/// A line of shell and what it costs.
struct Timed {
  ShellResult result;
  double seconds = 0;
};

Timed timed(const fake::Folder& folder, const std::string& line);

/// When a program is killed and by what.
struct Kill {
  double seconds = 0;  ///< after its start
  const char* signal = "KILL";
};

/// Moments up to `most` seconds; one kill in four by a signal that the program may answer.
Kill drawn_kill(std::mt19937_64& random, double most);

std::ostream& operator<<(std::ostream& stream, const Kill& kill);

/// Starts `command`, copies `journal` to before.jsonl at the moment of the kill, and kills the program at once. Nothing
/// that it started runs on.
void kill_after(const fake::Folder& folder, const std::string& command, const Kill& kill, const std::string& journal);

/// Lines that end, of a file that may not be there.
std::string whole_lines(const std::filesystem::path& file);

/// What a kill may have left: moments at which it came, by what it hit.
struct Kills {
  int before_the_journal = 0, within = 0, after_the_end = 0;
};

/// The case files that findings of the journal name.
std::set<std::string> cases_of(const fake::Folder& folder, const std::string& journal);

/// Of the canonical journal k, which is that of the run `killed` and of the run `whole`, both have the same case files,
/// and `killed` has none beyond its findings' and the worst ones. Findings of batches that ran beside each other
/// differ.
void expect_same_cases(const fake::Folder& folder);

/// Kills a check at `moments` random moments between its start and its end. After each the journal can be read, holds
/// what it held before, and goes on to the canonical journal of a run that nothing disturbed, and to its case files:
/// none is missing, and none is left that no finding names. The check ends with `status`.
Kills kill_checks(int moments, const std::string& check, std::mt19937_64& random, int status = 0);

/// Kills campaigns of `seconds` each. After each the journal can be read, holds what it held before and, once a
/// campaign has begun, what it had done up to `slack` seconds before the kill, and a campaign goes on with it.
Kills kill_campaigns(int moments, const std::string& fuzz, double most_seconds, double slack, std::mt19937_64& random);

/// Kills merges into a file, into a file that stands already, and into a folder. After each the file is whole or what
/// it was, and the merge can be made again.
Kills kill_merges(int moments, const std::string& check, std::mt19937_64& random);

}  // namespace attest
