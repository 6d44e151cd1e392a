#include "headrace/tools/output/json_lines.h"

#include <fmt/format.h>

#include <zlib.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/error.h"

namespace headrace::tools {
namespace {

struct NpzEntry {
  std::string name;  // without ".npy"
  std::string bytes;
};
// Returns an .npz archive. Throws ConfigError if it would have 4 GiB or more.
std::string npz_bytes(const std::vector<NpzEntry>& entries);

constexpr std::size_t kAlignment = 64;
constexpr char32_t kNoCharacter = 0xFFFD;

void put(std::string& to, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

// Returns how many bytes follow the first one of a UTF-8 sequence; -1 if none can begin so.
int followers(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first < 0xE0) return 1;
  if (first >= 0xE0 && first < 0xF0) return 2;
  return first >= 0xF0 && first < 0xF5 ? 3 : -1;
}

std::u32string characters(std::string_view text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int more = followers(first);
    char32_t character = more == 0 ? first : first & (0x3F >> std::max(more, 0));
    bool sound = more >= 0 && i + static_cast<std::size_t>(more) < text.size();
    for (int k = 1; sound && k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      sound = (next & 0xC0) == 0x80;
      character = character << 6 | (next & 0x3F);
    }
    out.push_back(sound ? character : kNoCharacter);
    i += sound ? static_cast<std::size_t>(more) + 1 : 1;
  }
  return out;
}

// The fields that a member's two headers share.
std::string zip_fields(const NpzEntry& entry) {
  std::string fields;
  put(fields, 20, 2);    // version to read it
  put(fields, 0, 2);     // flags
  put(fields, 0, 2);     // stored
  put(fields, 0, 2);     // time
  put(fields, 0x21, 2);  // date: 1980-01-01
  const auto size = static_cast<std::uint32_t>(entry.bytes.size());
  put(fields,
      static_cast<std::uint32_t>(
          crc32(0, reinterpret_cast<const Bytef*>(entry.bytes.data()), static_cast<uInt>(size))),
      4);
  put(fields, size, 4);
  put(fields, size, 4);
  put(fields, static_cast<std::uint32_t>(entry.name.size() + 4), 2);
  put(fields, 0, 2);  // extra fields
  return fields;
}

// Returns an array in .npy format, version 1.0. `type` as NumPy writes it: "<f4".
std::string npy_bytes(std::string_view type, const std::vector<std::int64_t>& shape,
                      std::span<const std::byte> data) {
  std::string extents;
  for (const std::int64_t extent : shape) extents += fmt::format("{},", extent);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, extents);
  constexpr std::size_t kBefore = 10;  // magic, version, length
  const std::size_t rest = (kBefore + header.size() + 1) % kAlignment;
  if (rest != 0) header.append(kAlignment - rest, ' ');
  header.push_back('\n');
  std::string bytes = "\x93NUMPY";
  put(bytes, 1, 2);  // version 1.0
  put(bytes, static_cast<std::uint32_t>(header.size()), 2);
  bytes += header;
  return bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
}

// Returns an array of texts, each UTF-8; bytes that are not become U+FFFD.
std::string npy_texts(const std::vector<std::string>& texts) {
  std::vector<std::u32string> decoded;
  std::size_t longest = 1;
  for (const std::string& text : texts) {
    decoded.push_back(characters(text));
    longest = std::max(longest, decoded.back().size());
  }
  std::u32string all;
  for (std::u32string& text : decoded) {
    text.resize(longest);
    all += text;
  }
  return npy_bytes(fmt::format("<U{}", longest), {static_cast<std::int64_t>(texts.size())},
                   std::as_bytes(std::span(all)));
}

std::string npz_bytes(const std::vector<NpzEntry>& entries) {
  std::string archive, directory;
  for (const NpzEntry& entry : entries) {
    const std::string fields = zip_fields(entry), name = entry.name + ".npy";
    const std::size_t offset = archive.size();
    if (offset + entry.bytes.size() >= 0xFFFF'0000U) {
      throw ConfigError("an .npz of 4 GiB or more is not written", "write the values alone, as .npy, or .csv");
    }
    put(archive, 0x04034b50, 4);
    archive += fields + name + entry.bytes;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);  // version that made it
    directory += fields;
    put(directory, 0, 2);  // comment
    put(directory, 0, 2);  // disk
    put(directory, 0, 2);  // internal attributes
    put(directory, 0, 4);  // external attributes
    put(directory, static_cast<std::uint32_t>(offset), 4);
    directory += name;
  }
  const auto count = static_cast<std::uint32_t>(entries.size()),
             begin = static_cast<std::uint32_t>(archive.size());
  archive += directory;
  put(archive, 0x06054b50, 4);
  put(archive, 0, 4);  // disks
  put(archive, count, 2);
  put(archive, count, 2);
  put(archive, static_cast<std::uint32_t>(directory.size()), 4);
  put(archive, begin, 4);
  put(archive, 0, 2);  // comment
  return archive;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char character : text) {
    if (character == '"') out.push_back('"');
    out.push_back(character);
  }
  return out + '"';
}

std::string listed_name(const std::vector<std::string>& names, std::size_t at) {
  return at < names.size() ? names[at] : std::string();
}

std::string csv_header(const NamedPredictions& all) {
  std::string header = "name,record,label,label_class,prediction,class";
  for (std::size_t i = 0; i < all.width(); ++i) {
    header += ',' + (i < all.classes.size() ? csv_field(all.classes[i]) : fmt::format("value_{}", i));
  }
  return header + '\n';
}

std::string csv_row(const NamedPredictions& all, std::size_t example) {
  const std::optional<std::int64_t>& label = all.labels[example];
  const std::optional<std::size_t> best = all.prediction(example);
  std::string row = fmt::format(
      "{},{},{},{},{},{}", csv_field(all.names[example]), all.results.records[example],
      label ? std::to_string(*label) : "",
      label && *label >= 0 ? csv_field(listed_name(all.classes, static_cast<std::size_t>(*label))) : "",
      best ? std::to_string(*best) : "", best ? csv_field(listed_name(all.classes, *best)) : "");
  for (std::size_t i = 0; i < all.width(); ++i) {
    row += fmt::format(",{}", all.results.values[example * all.width() + i]);
  }
  return row + '\n';
}

std::vector<std::int64_t> extents(const Shape& shape) {
  std::vector<std::int64_t> list;
  for (int axis = 0; axis < shape.rank(); ++axis) list.push_back(shape[axis]);
  return list;
}

std::string values_npy(const std::vector<float>& values, const Shape& shape) {
  return npy_bytes("<f4", extents(shape), std::as_bytes(std::span(values)));
}

template <typename Number>
std::string numbers_npy(std::string_view type, const std::vector<Number>& numbers) {
  return npy_bytes(type, {static_cast<std::int64_t>(numbers.size())}, std::as_bytes(std::span(numbers)));
}

std::string npz(const NamedPredictions& all) {
  std::vector<std::int64_t> predictions, labels;
  for (std::size_t i = 0; i < all.names.size(); ++i) {
    const std::optional<std::size_t> best = all.prediction(i);
    predictions.push_back(best ? static_cast<std::int64_t>(*best) : -1);
    labels.push_back(all.labels[i].value_or(-1));
  }
  std::vector<NpzEntry> entries{{"values", values_npy(all.results.values, all.results.shape)},
                                {"records", numbers_npy("<u8", all.results.records)},
                                {"names", npy_texts(all.names)}};
  const bool predicted = std::ranges::any_of(predictions, [](std::int64_t best) { return best >= 0; });
  if (predicted) entries.push_back({"predictions", numbers_npy("<i8", predictions)});
  const bool labelled = std::ranges::any_of(labels, [](std::int64_t label) { return label >= 0; });
  if (labelled) entries.push_back({"labels", numbers_npy("<i8", labels)});
  if (!all.classes.empty()) entries.push_back({"classes", npy_texts(all.classes)});
  for (const OutputValues& other : all.results.others) {
    entries.push_back({"output_" + other.layer, values_npy(other.values, other.shape)});
  }
  return npz_bytes(entries);
}

}  // namespace

std::size_t NamedPredictions::width() const { return names.empty() ? 0 : results.values.size() / names.size(); }

std::optional<std::size_t> NamedPredictions::prediction(std::size_t example) const {
  const std::optional<std::int64_t> found = predicted_class(results, example);
  return found ? std::optional(static_cast<std::size_t>(*found)) : std::nullopt;
}

PredictionFormat prediction_format(const std::filesystem::path& file) {
  if (file.extension() == ".csv") return PredictionFormat::kCsv;
  if (file.extension() == ".npy") return PredictionFormat::kNpy;
  return file.extension() == ".npz" ? PredictionFormat::kNpz : PredictionFormat::kJsonLines;
}

PredictionFile::PredictionFile(const std::filesystem::path& file)
    : format_(prediction_format(file)), file_(file) {}

void PredictionFile::write(const NamedPredictions& predictions) {
  const auto append = [&](const std::string& text) { file_.append(std::as_bytes(std::span(text))); };
  if (format_ == PredictionFormat::kNpy) {
    append(values_npy(predictions.results.values, predictions.results.shape));
  } else if (format_ == PredictionFormat::kNpz) {
    append(npz(predictions));
  } else {
    append(csv_header(predictions));
    for (std::size_t i = 0; i < predictions.names.size(); ++i) append(csv_row(predictions, i));
  }
  file_.commit();
}

}  // namespace headrace::tools
