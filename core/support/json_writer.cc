#include "core/support/json_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/support/visible.h"

namespace attest {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

void JsonWriter::separate() {
  if (!fresh_) text_ += ',';
  fresh_ = false;
}

JsonWriter& JsonWriter::begin_object() {
  separate();
  text_ += '{';
  fresh_ = true;
  return *this;
}
JsonWriter& JsonWriter::end_object() {
  text_ += '}';
  fresh_ = false;
  return *this;
}
JsonWriter& JsonWriter::begin_array() {
  separate();
  text_ += '[';
  fresh_ = true;
  return *this;
}
JsonWriter& JsonWriter::end_array() {
  text_ += ']';
  fresh_ = false;
  return *this;
}
JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  fresh_ = true;
  return *this;
}
JsonWriter& JsonWriter::value(std::string_view text) {
  const auto stands_for_itself = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, stands_for_itself)) {
    separate();
    text_ += '"';
    text_ += text;
    text_ += '"';
    return *this;
  }
  return raw(visible_json(
      nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace)));
}
JsonWriter& JsonWriter::value(double number) {
  return std::isfinite(number) ? raw(number_text(number)) : value(std::string_view(number_text(number)));
}
JsonWriter& JsonWriter::value(bool truth) {
  return raw(truth ? "true" : "false");
}
JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

}  // namespace attest
