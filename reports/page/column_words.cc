#include "reports/page/column_words.h"

#include <algorithm>
#include <array>

namespace attest {
namespace {

constexpr auto all = std::to_array<ColumnWords>({
    {"kernel", "Its id on the command line, or the name that its manifest gives.", ""},
    {"dtype", "The format of q and of the output.", ""},
    {"dtype (sums)", "The format of q and of the output, and that of the kernel's sums where its manifest says it.",
     ""},
    {"property", "A claim about attention; attest list PROPERTY states it.", ""},
    {"properties", "Claims about attention; attest list PROPERTY states each.", ""},
    {"replay", "Unfolds the line that runs this case again.", ""},
    {"verdict", "Violated if one case is, else inconclusive if one is or too few were judged, else held.", "held"},
    {"verdict in a dtype",
     "The verdict over all properties, and beside it the worst share: the largest error as a share of what is allowed, "
     "against the exact answer; up to 1 is held. Rounding to subnormals, of which every kernel attains nearly all that "
     "is allowed, stands apart under Tolerances.",
     "worst-share"},
    // Counts.
    {"held", "Cases in which every judged number lies within what is allowed, or properties with such cases alone.",
     "held"},
    {"violated", "Cases in which a number lies beyond what is allowed, or properties with such a case.", "held"},
    {"inconclusive", "Cases that could not be decided, or properties with such a case or with too few judged ones.",
     "inconclusive"},
    {"excused", "Cases in which nothing can be judged; never counted as held.", "excused"},
    {"cases not judged", "How many cases of those that the manifest offers.", "judged"},
    {"cases decided", "Judged cases that this level decided.", "judged"},
    {"reason", "Why a case that the manifest offers was not judged.", ""},
    {"deepest level", "The most precise arithmetic that a case needed.", ""},
    {"why", "What kept its cases from being judged.", ""},
    {"why, and what to do", "What kept its cases from being judged, and what lets them be.", ""},
    {"kernels", "Where no case of it was judged.", ""},
    // By kernel.
    {"worst of cases",
     "The largest share of what is allowed over the property's judged cases, as drawn. A law that compares two runs "
     "allows the sum of both bounds, and rounding to subnormals is not apart: it is another figure than the worst "
     "share.",
     "worst"},
    {"p99 of cases", "99 of 100 judged cases of the property have at most this share of what is allowed.", "p99"},
    {"p50 of cases", "Half of the judged cases of the property have at most this share of what is allowed.", "p99"},
    {"reach", "The largest M, N, dk and heads that were held against the exact answer, each by itself.", "reach"},
    // Errors and tolerances.
    {"atol", "The absolute tolerance to copy: twice what ordinary inputs needed. A question mark: from too few cases.",
     "tolerance-to-copy"},
    {"rtol", "The relative tolerance to copy with it: accepted is |found - exact| <= atol + rtol |exact|.",
     "tolerance-to-copy"},
    {"lets pass", "Planted faults that the two miss on half of the ordinary cases that show them, or on more.",
     "lets-pass"},
    {"error, ordinary",
     "The largest absolute error of ordinary inputs, whose scores and values are of order 1; of captured cases, of all.",
     "error"},
    {"ordinary, in u Σα|v|", "The largest error of ordinary inputs over u Σα|v|.", "scaled-error"},
    {"worst share",
     "The largest error as a share of what is allowed, against the exact answer, of all inputs; rounding to subnormals "
     "stands apart. Up to 1 is held.",
     "worst-share"},
    {"subnormal rounding",
     "The same of results below the least normal number of the format, where half a unit of the subnormals is most of "
     "what is allowed: every kernel that is right comes close to 1. A dash: no such result had an error.",
     "subnormal-rounding"},
    {"cases measured", "Judged cases whose errors against the exact answer were measured.", "error"},
    {"elements measured", "Judged elements of their outputs.", "error"},
    {"p99.9", "A share of what is allowed that 999 of 1000 elements do not exceed.", "p99.9"},
    {"rms", "The root of the mean square of the elements' shares; shares beyond 4 count as 4.", "rms"},
    {"bias", "The mean of the elements' shares with their signs; positive: answers too large.", "bias"},
    {"in u Σα|v|", "The largest error over u Σα|v|, u the unit roundoff of the output.", "scaled-error"},
    {"condition",
     "Σα|v| over |Σαv| at the element of the largest utilisation: how many times cancelling enlarges an error.",
     "condition"},
    {"worst case", "Unfolds the line that runs the case of the largest utilisation again.", ""},
    {"by", "What the cases are told apart by.", ""},
    {"class of case", "Number of keys, effect of the mask, or kind of values; ordinary: inputs as most suites have.",
     ""},
    // Findings.
    {"tensor", "An input of the call.", ""},
    {"shape", "Its dtype and its extents.", ""},
    {"decimal", "Its first elements, in as many digits as tell them from their neighbours.", ""},
    {"hexadecimal", "The same elements, exactly.", ""},
    {"kind of violation", "What was violated: a bound, bits, a contract.", ""},
    {"utilisation, as saved", "Error over what is allowed, of the case in its file, which was shrunk.",
     "utilisation-as-saved"},
    // Evidence.
    {"strongest evidence", "The strongest that was established about the property over the real numbers.", ""},
    {"real numbers, a model", "What Coq proves of a model, for all shapes.", ""},
    {"real numbers, the core", "What is proved of the core's templates, at the shapes that are named (M,N,dk,dv,h).",
     ""},
    {"evidence of a kernel",
     "What the run found of the kernel in that dtype: ✓ held on so many judged cases, ✗ violated "
     "by so many, ? undecided; empty: not asked, –: does not apply or was not judged.",
     "judged"},
    {"evidence", "Its kind; guide/proofs.md explains each.", ""},
    {"about", "What it was established about.", ""},
    {"words", "What the proof says.", ""},
    // Changes.
    {"change", "Worse, better, or otherwise than in the baseline.", "worse"},
    {"in words", "What it was and what it is.", ""},
    // What was drawn, and shapes.
    {"kind drawn", "A kind of input that the generators know.", ""},
    {"cases with it", "Judged cases that have it.", "judged"},
    {"share of cases", "Of the judged cases.", "judged"},
    {"bits", "A class of numbers by their bits.", ""},
    {"cases of a dtype", "Judged cases with such a number, and their share.", "judged"},
    {"cases with", "What the property is about.", "says-little"},
    {"judged with it", "Judged cases that have it.", "says-little"},
    {"of judged", "All judged cases.", "judged"},
    {"enough", "So many would be enough.", "says-little"},
    {"variants", "What the case has that not every kernel knows.", ""},
    {"causal form", "The causal form, or, without one, where positions are counted from.", ""},
    {"heads of k and v", "Whether several heads of q read one head of k and v.", ""},
    {"judged in combination", "Judged cases that have all of it, with such a mask; never: none had.", "judged"},
    {"M \\ N", "Numbers of queries down, of keys across.", ""},
    {"judged by N", "Judged cases of so many keys; of how many, where some were not judged.", "shapes"},
    {"queries and keys", "What tiles of these sizes make of M and N.", ""},
    {"judged by tile", "Judged cases by tiles of that size; of how many, where some were not judged.", "shapes"},
    {"extent", "A range of the extent.", ""},
    {"judged", "Judged cases; of how many, where some were not judged.", "shapes"},
    // Alarm.
    {"elements held against it", "Elements held against the probabilistic bound.", "alarm"},
    {"not covered", "Elements that the bound does not cover.", "alarm"},
    {"beyond", "Elements with an error beyond the probabilistic bound.", "alarm"},
    {"cases with one beyond", "Cases with such an element.", "alarm"},
    {"worst over that bound", "The largest error over the probabilistic bound.", "alarm"},
    // The suite's own score, and searches.
    {"kind of fault", "A kind of the mistakes that are planted in kernels.", ""},
    {"faults", "How many of it are planted.", "own-score"},
    {"caught", "How many of them a property turned red.", "own-score"},
    {"caught by a short check", "How many of them that few cases of a property caught.", "own-score"},
    {"fault", "The planted mistake that is looked for.", ""},
    {"guided: found", "On how many seeds the guided search found it.", "runs-to-find"},
    {"guided: median runs", "The median of the runs that it took.", "runs-to-find"},
    {"unguided: found", "On how many seeds the unguided search found it.", "runs-to-find"},
    {"unguided: median runs", "The median of the runs that it took.", "runs-to-find"},
    {"A12", "The probability that the guided search does better, ties counted half.", "runs-to-find"},
    {"guided: median", "The worst utilisation that the guided search found, the median over seeds.", "utilisation"},
    {"unguided: median", "The same of the unguided search.", "utilisation"},
    {"ratio", "The first over the second.", "utilisation"},
    // Surveys.
    {"library", "The project whose code it is.", ""},
    {"version", "Of the library.", ""},
    {"code path", "The way through the library's code that was forced.", ""},
    {"output", "What was held against the exact answer: the output, or a gradient.", ""},
    {"p99.9, ordinary",
     "A share of what is allowed that 999 of 1000 elements do not exceed, on inputs as most suites have. A dash: none "
     "was drawn.",
     "p99.9"},
    {"searched", "Cases that a search bred to be as hard as can be.", "judged"},
    {"worst known input", "Unfolds the line that runs the case of the worst share again.", ""},
    {"arithmetic found", "What attest probe found of formats, order of sums and exp, unfolded.", ""},
    {"promised, and kept", "What the library promises of its numbers, and the verdict on that.", ""},
    {"date", "When its check began.", ""},
    {"processor", "On which it was run.", ""},
    {"from", "The version before.", ""},
    {"to", "The version after.", ""},
    {"verdict before", "The verdict of the version before.", "held"},
    {"worst share before", "The worst share of the version before.", "worst-share"},
    {"recipe", "The script that installs the library.", ""},
    {"asked", "What a check asked of it; a slow path is not asked everything.", ""},
    {"forced", "How it was made certain that this path was taken.", ""},
    // Numbers.
    {"number", "What it is called in this report.", ""},
    {"what it is", "Its formula.", ""},
    {"computed in", "The source file that computes it.", ""},
});

}  // namespace

std::span<const ColumnWords> column_words() {
  return all;
}

const ColumnWords* words_of_column(std::string_view name) {
  const auto* const found = std::ranges::find(all, name, &ColumnWords::name);
  return found == all.end() ? nullptr : found;
}

}  // namespace attest
