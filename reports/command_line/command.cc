#include "reports/command_line/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/support/errors.h"

namespace attest {
namespace {

/// What is written is named by either word.
std::string with_other_spelling(std::string_view names) {
  return fmt::format("{}{}", names,
                     names.ends_with("--out")      ? ",--output"
                     : names.ends_with("--output") ? ",--out"
                                                   : "");
}

}  // namespace

std::string ShownOption::usage() const {
  return fmt::format("{}{}{}{}", fmt::join(flags, ", "), value.empty() ? "" : " ", value,
                     several && !value.empty() ? "..." : "");
}

OptionList::OptionList() : app_(std::make_shared<CLI::App>()) {
  app_->set_help_flag();  // CLI11's own would end the parse
  app_->allow_extras();
}

void OptionList::flag(std::string_view names, bool& given, std::string_view help) {
  app_->add_flag_function(std::string(names), [&given](std::int64_t) { given = true; }, std::string(help));
}

void OptionList::add(std::string_view names, std::string_view word, std::string_view help, Takes takes,
                     const Reading& read, Offer offer) {
  const std::string name(names.substr(names.rfind(',') + 1));
  CLI::Option* const option = app_->add_option_function<std::vector<std::string>>(
      with_other_spelling(names),
      [=](const std::vector<std::string>& texts) {
        if (takes == Takes::one && texts.size() > 1)
          throw UsageError(fmt::format("{} is given {} times; give it once", name, texts.size()));
        for (const std::string& text : texts) read(name, text);
      },
      std::string(help));
  option->option_text(std::string(word))->take_all();
  if (takes != Takes::several) option->expected(1)->allow_extra_args(false);
  offers_[option] = offer ? std::move(offer) : [] { return Completions(); };
}

void OptionList::pass_on(std::vector<std::string>& words) {
  app_->prefix_command();
  passed_on_ = &words;
}

std::vector<ShownOption> OptionList::shown() const {
  std::vector<ShownOption> all;
  for (CLI::Option* const option : app_->get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    ShownOption one{.flags = {},
                    .spellings = {},
                    .value = {},
                    .help = option->get_description(),
                    .several = option->get_allow_extra_args(),
                    .positional = option->get_positional(),
                    .offer = {}};
    if (one.positional) one.flags.push_back(option->get_name());
    if (!one.positional) one.value = option->get_option_text();
    for (const std::string& name : option->get_snames()) one.flags.push_back("-" + name);
    if (!option->get_lnames().empty()) one.flags.push_back("--" + option->get_lnames().front());
    for (const std::string& name : option->get_snames()) one.spellings.push_back("-" + name);
    std::vector<std::string> names = option->get_lnames();
    std::ranges::sort(names);
    for (const std::string& name : names) one.spellings.push_back("--" + name);
    if (const auto offer = offers_.find(option); offer != offers_.end()) one.offer = offer->second;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace attest
