// A command of the program: its words, its options, which it declares to CLI11, and what it does. Parser (parse.h),
// help (help.h), manual page (manual.h) and completion (completion.h) know a command by this alone.
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/errors.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace attest {

/// A command line as main has it, the program's name first.
using Arguments = std::span<const char* const>;

/// What the shell offers where a value is to follow.
struct Completions {
  std::vector<std::string> words{};
  bool files = false;
  bool folders = false;  ///< without files
  bool listed = false;   ///< several with commas
};
using Offer = std::function<Completions()>;

/// A kind of value that options take (option_values.h).
template <class T>
struct Value {
  std::string_view word;  ///< for the help: "FILE"
  /// Throws UsageError, one line with the option, the text and the rule, for a text that is none.
  std::function<T(std::string_view option, const std::string& text)> read;
  Offer offer{};  ///< empty: no such value has a name
};

/// An option as people are shown it.
struct ShownOption {
  std::vector<std::string> flags;      ///< {"-o", "--output"}; of positional arguments their name, {"RUN"}
  std::vector<std::string> spellings;  ///< every way to write it, those that are not shown too
  std::string value;                   ///< the word for what follows; empty for a flag and for positional arguments
  std::string help;
  bool several = false;     ///< takes as many values as follow
  bool positional = false;  ///< has no flag
  Offer offer;              ///< what the shell offers for its value; empty for a flag

  /// "--output", with which a mistyped option is compared; "RUN".
  [[nodiscard]] const std::string& name() const { return flags.back(); }
  /// "-o, --output FILE", "--case FILE...", "RUN"
  [[nodiscard]] std::string usage() const;
};

/// The options of a command, held by a CLI::App. Names are written "-o,--output"; --out can be written --output and the
/// other way round. What is declared is shown in the order of declaration. Fields are written to as the line is parsed.
class OptionList {
 public:
  OptionList();
  /// One that takes no value.
  void flag(std::string_view names, bool& given, std::string_view help);
  /// One that takes a value: once, or, where `field` is a vector, as often as one likes. Of values that are vectors
  /// themselves the elements are added, each once.
  template <class T, class Field>
  void option(std::string_view names, Field& field, const Value<T>& value, std::string_view help) {
    add(names, value.word, help, vector_like<Field> ? Takes::one_each_time : Takes::one, reading(value, field),
        value.offer);
  }
  /// One that takes as many values as follow; without a dash the positional arguments.
  template <class T, class Field>
  void several(std::string_view names, std::vector<Field>& fields, const Value<T>& value, std::string_view help) {
    add(names, value.word, help, Takes::several, reading(value, fields), value.offer);
  }
  /// Instead of options: from the first word that is none, all go to another program.
  void pass_on(std::vector<std::string>& words);

  [[nodiscard]] std::vector<ShownOption> shown() const;
  /// For the parser.
  [[nodiscard]] const std::shared_ptr<CLI::App>& app() const { return app_; }
  [[nodiscard]] std::vector<std::string>* passed_on() const { return passed_on_; }

 private:
  enum class Takes { one, one_each_time, several };
  using Reading = std::function<void(std::string_view option, const std::string& text)>;
  template <class T>
  static constexpr bool vector_like = requires(T& vector) { vector.emplace_back(); };

  template <class T, class Field>
  static Reading reading(const Value<T>& value, Field& field) {
    return [read = value.read, &field](std::string_view option, const std::string& text) {
      if constexpr (std::same_as<T, Field> && vector_like<T>) {
        for (auto& one : read(option, text))
          if (std::ranges::find(field, one) == field.end()) field.push_back(one);
      } else if constexpr (vector_like<Field>) {
        field.emplace_back(read(option, text));
      } else {
        field = read(option, text);
      }
    };
  }
  void add(std::string_view names, std::string_view word, std::string_view help, Takes takes, const Reading& read,
           Offer offer);

  std::shared_ptr<CLI::App> app_;
  std::map<const CLI::Option*, Offer> offers_;
  std::vector<std::string>* passed_on_ = nullptr;
};

/// What a command takes and does.
struct CommandBody {
  OptionList options{};
  /// Once a line is parsed: throws UsageError for options that exclude or need each other.
  std::function<void()> refuse = [] {};
  /// Comes back with the exit status; throws UsageError or KernelLoadError.
  std::function<int(Arguments line)> run{};
};

struct Command : CommandBody {
  std::string_view name, usage, help, example;
};

/// With options of its own: `Options` has declare(OptionList&), and refuse() where they have rules. `run` takes the
/// options, and the whole line where it wants it.
template <class Options, class Run>
[[nodiscard]] CommandBody with_options(Run run) {
  CommandBody body;
  const auto options = std::make_shared<Options>();
  options->declare(body.options);
  if constexpr (requires { options->refuse(); }) body.refuse = [options] { options->refuse(); };
  body.run = [options, run]([[maybe_unused]] Arguments line) {
    if constexpr (std::invocable<Run, Options&, Arguments>) {
      return run(*options, line);
    } else {
      return run(*options);
    }
  };
  return body;
}

/// For the rules of options.
inline void refuse_if(bool wrong, const std::string& line) {
  if (wrong) throw UsageError(line);
}

}  // namespace attest
