#include "core/value/safetensors_header.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/support/names.h"
#include "core/support/refuse.h"

namespace attest {
namespace {

using json = nlohmann::json;

/// Receives the events of the parser. Events, because a document tree keeps only one of two equal names, and because
/// the parser holds no stack of calls, so that nesting cannot exhaust one; at the fourth level anything is refused
/// anyway.
class HeaderReader final : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}

  bool null() override { return unexpected("null"); }
  bool boolean(bool /*value*/) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override { return unexpected(fmt::format("{}", value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override { return unexpected(text); }
  bool binary(binary_t& /*value*/) override { return unexpected("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        refuse("tensor {}: an extent of {} is too large", in_quotes(entry_.name), value);
      }
      if (entry_.shape.size() == 4) refuse("tensor {}: more than 4 axes", in_quotes(entry_.name));
      entry_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::offsets) {
      if (offsets_ == 2) refuse("tensor {}: \"data_offsets\" has more than 2 numbers", in_quotes(entry_.name));
      (offsets_ == 0 ? entry_.begin : entry_.end) = value;
      ++offsets_;
      return true;
    }
    return unexpected(fmt::format("{}", value));
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    if (place_ == Place::tensor && key_ == "dtype") {
      const auto dtype = dtype_safetensors_named(value);
      if (!dtype) {
        static constexpr std::array<std::string_view, 7> known{"F64",     "F32",     "F16", "BF16",
                                                               "F8_E4M3", "F8_E5M2", "BOOL"};
        refuse("tensor {}: dtype {} is unknown{}", in_quotes(entry_.name), in_quotes(value), suggestion(value, known));
      }
      entry_.dtype = *dtype;
      return true;
    }
    return unexpected("the string " + in_quotes(value));
  }

  bool start_object(std::size_t /*elements*/) override {
    if (place_ == Place::outside) {
      place_ = Place::top;
    } else if (place_ == Place::top && key_ == "__metadata__") {
      place_ = Place::metadata;
    } else if (place_ == Place::top) {
      place_ = Place::tensor;
      entry_ = HeaderEntry();
      entry_.name = key_;
      entry_.position = header_.entries.size();
      offsets_ = 0;
    } else {
      return unexpected("an object");
    }
    names_.emplace_back();
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      for (const std::string_view key : tensor_keys) {
        if (names_.back().count(std::string(key)) == 0) refuse("tensor {} has no \"{}\"", in_quotes(entry_.name), key);
      }
      header_.entries.push_back(std::move(entry_));
    }
    place_ = place_ == Place::top ? Place::outside : Place::top;
    names_.pop_back();
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    if (place_ == Place::tensor && key_ == "shape") {
      place_ = Place::shape;
    } else if (place_ == Place::tensor && key_ == "data_offsets") {
      place_ = Place::offsets;
    } else {
      return unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_ != 2) {
      refuse("tensor {}: \"data_offsets\" has {} numbers; it must have 2", in_quotes(entry_.name), offsets_);
    }
    place_ = Place::tensor;
    return true;
  }

  bool key(string_t& value) override {
    if (!names_.back().insert(value).second) refuse("the header has {} twice", in_quotes(value));
    if (place_ == Place::tensor && value != tensor_keys[0] && value != tensor_keys[1] && value != tensor_keys[2]) {
      refuse("tensor {}: unknown key {}{}", in_quotes(entry_.name), in_quotes(value), suggestion(value, tensor_keys));
    }
    key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& /*error*/) override {
    refuse("the header is not JSON in UTF-8: wrong at its byte {}", position);
  }

 private:
  enum class Place { outside, top, metadata, tensor, shape, offsets };
  static constexpr std::array<std::string_view, 3> tensor_keys{"dtype", "shape", "data_offsets"};

  /// Every value that stands where the format has none of its kind.
  bool unexpected(std::string_view what) const {
    switch (place_) {
      case Place::outside:
        refuse("the header is {}; it must be an object", what);
      case Place::top:
        refuse("{} is {}; it must be an object", in_quotes(key_), what);
      case Place::metadata:
        refuse("metadata {} is {}; it must be a string", in_quotes(key_), what);
      case Place::tensor:
        refuse("tensor {}: {} is {}; it must be {}", in_quotes(entry_.name), in_quotes(key_), what,
               key_ == "dtype"   ? "a string"
               : key_ == "shape" ? "an array of at most 4 whole numbers"
                                 : "an array of 2 whole numbers");
      case Place::shape:
      case Place::offsets:
        break;
    }
    refuse("tensor {}: {} holds {}; it must hold whole numbers from 0 to 2^64 - 1", in_quotes(entry_.name),
           in_quotes(key_), what);
  }

  SafetensorsHeader& header_;
  Place place_ = Place::outside;
  std::string key_;
  HeaderEntry entry_;
  int offsets_ = 0;
  std::vector<std::set<std::string>> names_;  ///< seen so far, of each object that is open
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text) {
  if (text.empty() || text.front() != '{') throw UsageError("the header does not begin with '{'");
  // The parser takes a NUL for the end of its text and would let anything follow it.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    throw UsageError(fmt::format("the header is not JSON in UTF-8: wrong at its byte {}", nul + 1));
  }
  SafetensorsHeader header;
  HeaderReader reader(header);
  json::sax_parse(text.begin(), text.end(), &reader);
  return header;
}

}  // namespace attest
