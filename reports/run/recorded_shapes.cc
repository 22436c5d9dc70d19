#include "reports/run/recorded_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/json_reader.h"
#include "core/support/names.h"
#include "reports/run/recorded_axes.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t most_bytes = std::size_t{64} << 20U, most_bytes_of_json = std::size_t{4} << 20U;
constexpr std::size_t most_entries = 1U << 16U;
/// From workloads/<op_type>/<name>.jsonl, or traces/<author>/<op_type>/<name>.jsonl, to the data set's root.
constexpr int most_levels_up = 4;

std::string shown(const fs::path& path) {
  return in_quotes(path.native(), 300);
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

auto key_of(const Extents& e) {
  return std::tuple(e.batch, e.heads, e.kv_heads, e.queries, e.keys, e.dk, e.dv);
}

class Recording {
 public:
  Recording(std::string_view option, const fs::path& path) : option_(option), root_(path) {}

  ReadShapes read() {
    std::error_code error;
    if (fs::is_directory(root_, error)) {
      read_folder();
    } else if (root_.extension() == ".jsonl") {
      read_workloads(root_);
    } else {
      read_definition_file(root_);
    }
    suppose_lengths();
    return result();
  }

 private:
  struct Known {
    RecordedDefinition definition;
    bool is_called = false;  ///< a workload is of it
    fs::path file;
  };

  [[noreturn]] void refuse(std::string_view where, std::string_view what, std::string_view remedy) const {
    throw UsageError(fmt::format("{} {}: {}; {}", option_, where, what, remedy));
  }

  [[nodiscard]] std::string bytes_of(const fs::path& file) const {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    const bool lines = file.extension() == ".jsonl";
    const std::size_t most = lines ? most_bytes : most_bytes_of_json;
    if (!error && size > most)
      refuse(shown(file),
             fmt::format("has {} bytes, {} may have {} at most", size, lines ? "workloads" : "a definition", most),
             lines ? "give a part of its lines" : "name the files that are definitions");
    return read_file(file);
  }

  /// Runs `read`; what it refuses is told with the place.
  template <class Read>
  void at(std::string_view where, std::string_view remedy, const Read& read) const {
    try {
      read();
    } catch (const UsageError& error) {
      const std::string_view what = error.what();
      if (what.starts_with(option_)) throw;
      refuse(where, what, remedy);
    }
  }

  /// The definition's name; nothing where the file holds another object.
  std::optional<std::string> read_definition_file(const fs::path& file) {
    std::optional<std::string> name;
    at(shown(file), "correct the file, or name others", [&] {
      const json value = parse_strict_json(bytes_of(file));
      const JsonObject object(value, "");
      if (object.find("axes") == nullptr && object.find("op_type") == nullptr) {
        ++others_;
        return;
      }
      RecordedDefinition definition = read_definition(value);
      name = definition.name;
      known_.try_emplace(*name, Known{.definition = std::move(definition), .is_called = false, .file = file});
    });
    return name;
  }

  void read_workloads(const fs::path& file) {
    const std::string bytes = bytes_of(file);
    std::size_t number = 0;
    for (std::size_t begin = 0, end = 0; begin < bytes.size(); begin = end + 1) {
      end = std::min(bytes.find('\n', begin), bytes.size());
      const std::string_view line = std::string_view(bytes).substr(begin, end - begin);
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const std::string where = fmt::format("{}:{}", shown(file), number);
      at(where, "correct the line, or take it out", [&] { read_workload(line, file, where); });
    }
  }

  void read_workload(std::string_view line, const fs::path& file, const std::string& where) {
    if (line.size() > most_bytes_of_json)
      throw UsageError(fmt::format("has {} bytes, a line may have {} at most", line.size(), most_bytes_of_json));
    const json value = parse_strict_json(line);
    const JsonObject object(value, "");
    std::string name;
    object.read("definition", name);
    if (name.empty()) object.refuse("definition", "it must be the name of a definition");
    const json* const workload = object.find("workload");
    if (workload == nullptr) object.refuse("workload", "it must be an object with axes");
    Known* const known = definition_of(name, file);
    if (known == nullptr)
      refuse(where, fmt::format("there is no definition {} here", in_quotes(name)),
             "put its .json beside the file, or into definitions/ of the data set that it lies in");
    known->is_called = true;
    ++calls_;
    if (!is_attention(known->definition)) return;
    take(shape_of(known->definition, read_axes(*workload, known->definition)), where);
  }

  Known* definition_of(const std::string& name, const fs::path& workloads) {
    if (const auto known = known_.find(name); known != known_.end()) return &known->second;
    look_around(fs::absolute(workloads).parent_path());
    const auto file = definition_files_.find(name);
    if (file == definition_files_.end() || read_definition_file(file->second) != name) return nullptr;
    return &known_.at(name);
  }

  /// Finds the definitions beside workloads and above them, by their names.
  void look_around(fs::path folder) {
    if (!looked_around_.insert(folder).second) return;
    add_definitions(files_in(folder, /*below=*/false));
    std::error_code error;
    for (int up = 0; up <= most_levels_up; ++up) {
      if (fs::is_directory(folder / "definitions", error)) return add_definitions(files_in(folder / "definitions"));
      folder = folder.parent_path();
    }
  }

  void add_definitions(const std::vector<fs::path>& files) {
    for (const fs::path& file : files)
      if (file.extension() == ".json") definition_files_.try_emplace(file.stem().native(), file);
  }

  /// The files of JSON in a folder, sorted. Links to folders are not followed, so that it ends.
  [[nodiscard]] std::vector<fs::path> files_in(const fs::path& folder, bool below = true) const {
    std::vector<fs::path> files;
    std::error_code error, ignored;
    std::size_t entries = 0;
    fs::recursive_directory_iterator entry(folder, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (++entries > most_entries)
        refuse(shown(folder), fmt::format("holds more than {} files", most_entries), "name a folder within it");
      if (!below) entry.disable_recursion_pending();
      const fs::path extension = entry->path().extension();
      if ((extension == ".json" || extension == ".jsonl") && entry->is_regular_file(ignored))
        files.push_back(entry->path());
    }
    if (error) refuse(shown(folder), error.message(), "name a folder that can be read");
    std::ranges::sort(files);
    return files;
  }

  void read_folder() {
    std::error_code error;
    std::vector<fs::path> files;
    // Solutions and traces of a data set are of the same workloads.
    if (fs::is_directory(root_ / "definitions", error)) {
      files = files_in(root_ / "definitions");
      if (fs::is_directory(root_ / "workloads", error))
        for (fs::path& file : files_in(root_ / "workloads")) files.push_back(std::move(file));
    } else {
      files = files_in(root_);
    }
    for (const fs::path& file : files)
      if (file.extension() == ".json") read_definition_file(file);
    for (const fs::path& file : files)
      if (file.extension() == ".jsonl") read_workloads(file);
  }

  void suppose_lengths() {
    for (const auto& [name, known] : known_) {
      if (known.is_called || !is_attention(known.definition)) continue;
      const RecordedShape heads = heads_of(known.definition);
      if (!heads.shape) {
        take(heads, shown(known.file));
        continue;
      }
      const std::vector<Extents> shapes = supposed_shapes(known.definition, *heads.shape);
      // What its heads are against is said once.
      const bool taken = std::ranges::all_of(shapes, [&, &file = known.file](const Extents& e) {
        return take({.shape = e, .why_none = {}}, shown(file));
      });
      supposed_ += taken ? 1 : 0;
    }
  }

  /// Whether it is a shape.
  bool take(const RecordedShape& recorded, std::string_view where) {
    std::string why = recorded.why_none;
    if (recorded.shape) why = why_no_shape(*recorded.shape);
    if (!why.empty()) {
      if (recorded.shape) why = fmt::format("{} is no shape: {}", text_of(*recorded.shape), why);
      if (left_out_++ == 0) first_left_out_ = fmt::format("{}: {}", where, why);
      return false;
    }
    averaged_ += recorded.averaged ? 1 : 0;
    if (taken_.insert(key_of(*recorded.shape)).second) shapes_.push_back(*recorded.shape);
    return true;
  }

  /// "12 of 15 definitions are no attention that Attest asks: rmsnorm 8, gemm 4"; empty where all are.
  [[nodiscard]] std::string other_operations() const {
    std::map<std::string, std::size_t> counts;
    std::size_t all = 0;
    for (const auto& [name, known] : known_) {
      if (is_attention(known.definition)) continue;
      ++counts[known.definition.op_type];
      ++all;
    }
    if (all == 0) return {};
    std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
    std::ranges::sort(sorted, [](const auto& a, const auto& b) {
      return std::tuple(b.second, a.first) < std::tuple(a.second, b.first);
    });
    constexpr std::size_t most_named = 8;
    std::string names;
    for (std::size_t i = 0; i < std::min(sorted.size(), most_named); ++i) {
      const std::string quoted = in_quotes(sorted[i].first, 40);
      names += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted.substr(1, quoted.size() - 2), sorted[i].second);
    }
    if (sorted.size() > most_named) names += fmt::format(" and {} kinds more", sorted.size() - most_named);
    return fmt::format("{} of {} {} no attention that Attest asks: {}", all, counted(known_.size(), "definition"),
                       all == 1 ? "is" : "are", names);
  }

  [[nodiscard]] std::vector<std::string> left_out() const {
    std::vector<std::string> notes;
    if (std::string others = other_operations(); !others.empty()) notes.push_back(std::move(others));
    if (others_ > 0)
      notes.push_back(
          fmt::format("{} of JSON {} no definition", counted(others_, "file"), others_ == 1 ? "is" : "are"));
    if (left_out_ > 0)
      notes.push_back(fmt::format("{} left out, the first {}", counted(left_out_, "shape"), first_left_out_));
    return notes;
  }

  ReadShapes result() {
    ReadShapes read{.shapes = {}, .notes = left_out()};
    if (shapes_.empty()) {
      std::string why = "it takes definitions and workloads of flashinfer-bench, or what FLASHINFER_TRACE_DUMP writes";
      if (!read.notes.empty()) why = fmt::format("{}", fmt::join(read.notes, "; "));
      throw UsageError(fmt::format("{} {}: holds no shape of attention; {}", option_, shown(root_), why));
    }
    if (supposed_ > 0)
      read.notes.push_back(fmt::format(
          "{} without a recorded call: heads and widths are recorded, the lengths are those of Attest's own "
          "production shapes",
          counted(supposed_, "definition")));
    if (averaged_ > 0)
      read.notes.push_back(
          fmt::format("{} of {}: the sequences of a batch have their average length, rounded up, and whole pages",
                      averaged_, counted(calls_, "call")));
    const std::size_t all = shapes_.size(), kept = std::min(all, most_recorded_shapes);
    for (std::size_t i = 0; i < kept; ++i) read.shapes.push_back(shapes_[i * all / kept]);
    if (kept < all)
      read.notes.push_back(
          fmt::format("{} of {} shapes are taken, evenly among them; give a part of the files for "
                      "the others",
                      kept, all));
    for (std::string& note : read.notes) note = fmt::format("{} {}: {}", option_, shown(root_), note);
    return read;
  }

  std::string option_;
  fs::path root_;
  std::map<std::string, Known> known_;                ///< by name
  std::map<std::string, fs::path> definition_files_;  ///< those around workloads, by name
  std::set<fs::path> looked_around_;
  std::vector<Extents> shapes_;
  std::set<decltype(key_of(Extents()))> taken_;
  std::size_t calls_ = 0, averaged_ = 0, supposed_ = 0, others_ = 0, left_out_ = 0;
  std::string first_left_out_;
};

}  // namespace

ReadShapes read_shapes(std::string_view option, const fs::path& path) {
  std::error_code error;
  const bool is_recorded = path.extension() == ".json" || path.extension() == ".jsonl" || fs::is_directory(path, error);
  if (is_recorded) return Recording(option, path).read();
  return {.shapes = shapes_in(option, path), .notes = {}};
}

}  // namespace attest
