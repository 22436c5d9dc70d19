// What travels in the file of a case beside the problem: where it comes from, how its memory lies, what was found.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace attest {

/// Words as the file states them, nothing where it does not.
struct Provenance {
  using Word = std::optional<std::string>;

  // Where it comes from: generate(property, dtype, seed, k), or the file that a user captured.
  Word property, dtype, seed, k;
  Word kinds;   ///< what was drawn, GROUP:NAME and a space between them
  Word source;  ///< the captured file

  // What whoever lays out the memory and judges the case has to know.
  Word arguments;   ///< NAME=NUMBER and a space between them: what a law takes in the place of what it draws
  Word strides;     ///< see memory.h
  Word edge;        ///< see edge.h
  Word unused;      ///< "nan", "other": what pages and rows of a cache hold that no key stands in; see kv_cache.h
  Word non_finite;  ///< "yes": a property placed NaN or Inf among the inputs on purpose

  // What a run found.
  Word kernel;
  Word against;                ///< the kernel it was compared with
  Word expected;               ///< the name of the outcome
  Word shrunk;                 ///< "yes"
  Word over_budget;            ///< why project left it as it was drawn; check_case skips it with that
  Word without;                ///< the hypothesis that the case is a witness for
  Word at_load;                ///< "yes": the verdict is about the loading of the kernel
  Word violated_again;         ///< "2 of 8": how often, when it was checked again
  Word calls_before;           ///< the files, beside this one, of calls that have to come first
  Word call_output, call_lse;  ///< of such a call: the dtype asked for, and "yes" or "no"

  /// Under names that are none of these: of a file that a user captured.
  std::map<std::string, std::string> others;

  [[nodiscard]] bool operator==(const Provenance&) const = default;
};

struct ProvenanceField {
  std::string_view name;
  Provenance::Word Provenance::* member;
};
inline constexpr std::array provenance_fields{
    ProvenanceField{"property", &Provenance::property},
    ProvenanceField{"dtype", &Provenance::dtype},
    ProvenanceField{"seed", &Provenance::seed},
    ProvenanceField{"k", &Provenance::k},
    ProvenanceField{"kinds", &Provenance::kinds},
    ProvenanceField{"source", &Provenance::source},
    ProvenanceField{"arguments", &Provenance::arguments},
    ProvenanceField{"strides", &Provenance::strides},
    ProvenanceField{"edge", &Provenance::edge},
    ProvenanceField{"unused", &Provenance::unused},
    ProvenanceField{"non_finite", &Provenance::non_finite},
    ProvenanceField{"kernel", &Provenance::kernel},
    ProvenanceField{"against", &Provenance::against},
    ProvenanceField{"expected", &Provenance::expected},
    ProvenanceField{"shrunk", &Provenance::shrunk},
    ProvenanceField{"over_budget", &Provenance::over_budget},
    ProvenanceField{"without", &Provenance::without},
    ProvenanceField{"at_load", &Provenance::at_load},
    ProvenanceField{"violated_again", &Provenance::violated_again},
    ProvenanceField{"calls_before", &Provenance::calls_before},
    ProvenanceField{"call_output", &Provenance::call_output},
    ProvenanceField{"call_lse", &Provenance::call_lse},
};

}  // namespace attest
