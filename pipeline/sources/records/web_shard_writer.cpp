#include "headrace/pipeline/sources/records/web_shard_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/archives/archive_files.h"

namespace headrace {
namespace {

constexpr std::size_t kTarBlock = 512;
constexpr std::array<std::byte, 2 * kTarBlock> kTarZeros{};
constexpr std::byte kPngByte{0x89};
constexpr std::string_view kImageField = "image", kLabelName = "label";

bool is_image_file(const Field& field) { return field.encoding == Encoding::kImage; }

bool is_file_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Writes a number in octal digits at an offset of a header, so many with the NUL at their end.
void put_octal(std::array<char, kTarBlock>& header, std::size_t at, std::size_t length, std::uint64_t value) {
  const std::string digits = fmt::format("{:0{}o}", value, length - 1);
  std::ranges::copy(digits, header.begin() + static_cast<std::ptrdiff_t>(at));
}

// The header of a regular file: POSIX.1-1988 (ustar), of no time and no owner.
std::array<std::byte, kTarBlock> tar_header(const std::string& name, std::uint64_t size) {
  std::array<char, kTarBlock> header{};
  std::ranges::copy(name, header.begin());
  put_octal(header, 100, 8, 0444);
  put_octal(header, 108, 8, 0);
  put_octal(header, 116, 8, 0);
  put_octal(header, 124, 12, size);
  put_octal(header, 136, 12, 0);
  header[156] = '0';
  std::memcpy(&header[257], "ustar\00000", 8);
  std::memset(&header[148], ' ', 8);  // the sum counts its own bytes as blanks
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put_octal(header, 148, 7, sum);
  return std::bit_cast<std::array<std::byte, kTarBlock>>(header);
}

template <typename T>
T number_in(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

bool is_text_like(const Field& field) {
  return field.dtype == DType::kU8 && field.shape.rank() == 1 && field.shape.is_dynamic();
}

// NumPy's name of the elements; null: it has none.
const char* numpy_type(DType dtype) {
  switch (dtype) {
    case DType::kU8: return "|u1";
    case DType::kI32: return "<i4";
    case DType::kI64: return "<i8";
    case DType::kF16: return "<f2";
    case DType::kF32: return "<f4";
    case DType::kBF16: break;
  }
  return nullptr;
}

// The header of an array of so many bytes, whose first extent may be dynamic: version 1 of NumPy's format.
std::string npy_head_of(const Field& field, std::size_t bytes) {
  std::string shape;
  std::uint64_t entry = size_of(field.dtype);
  for (int axis = 1; axis < field.shape.rank(); ++axis) entry *= static_cast<std::uint64_t>(field.shape[axis]);
  for (int axis = 0; axis < field.shape.rank(); ++axis) {
    const bool varies = axis == 0 && field.shape.is_dynamic();
    shape +=
        fmt::format("{},", varies ? static_cast<std::int64_t>(entry == 0 ? 0 : bytes / entry) : field.shape[axis]);
  }
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", numpy_type(field.dtype), shape);
  constexpr std::size_t kBefore = 10, kAlignment = 64;
  text.append(kAlignment - (kBefore + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  const auto length = static_cast<std::uint16_t>(text.size());
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xFF) + static_cast<char>(length >> 8) +
         text;
}

// Returns the number of a label as text that reads as the same number; empty: it is none.
std::string label_text(const Field& field, std::span<const std::byte> bytes) {
  if (field.shape.rank() != 0 || bytes.size() != size_of(field.dtype)) return {};
  if (field.dtype == DType::kI64) return std::to_string(number_in<std::int64_t>(bytes));
  if (field.dtype == DType::kF32) return fmt::format("{}", number_in<float>(bytes));
  return {};
}

}  // namespace

WebShardWriter::WebShardWriter(std::unique_ptr<FileWriter> file, Fields fields, std::uint64_t first)
    : file_(std::move(file)), fields_(std::move(fields)), number_(first) {
  if (std::ranges::none_of(fields_,
                           [](const Field& field) { return is_image_file(field) && field.name == kImageField; })) {
    throw ConfigError("a WebDataset archive holds images as the bytes of JPEG or PNG files, in a field 'image'",
                      "write record files, which hold pixels and arrays");
  }
  for (const Field& field : fields_) {
    if (numpy_type(field.dtype) == nullptr) {
      throw ConfigError(
          fmt::format("the elements of the field '{}' are of a type that NumPy's files do not have", field.name),
          "cast it to float32 before");
    }
    if (is_file_name(field.name)) continue;
    throw ConfigError(fmt::format("the field '{}' cannot be a part of a file's name", field.name),
                      "name it with letters, digits, '_' and '-'");
  }
}

void WebShardWriter::add_file(const std::string& ending, std::span<const std::byte> head,
                              std::span<const std::byte> bytes) {
  const std::uint64_t size = head.size() + bytes.size();
  file_->append(tar_header(fmt::format("{:09}.{}", number_, ending), size));
  file_->append(head);
  file_->append(bytes);
  file_->append(std::span(kTarZeros).first((kTarBlock - size % kTarBlock) % kTarBlock));
}

void WebShardWriter::add_field(const Field& field, std::span<const std::byte> bytes) {
  if (is_image_file(field)) {
    const std::string kind = !bytes.empty() && bytes.front() == kPngByte ? "png" : "jpg";
    return add_file(field.name == kImageField ? kind : field.name + "." + kind, bytes);
  }
  if (field.name == kLabelName) {
    if (const std::string text = label_text(field, bytes); !text.empty())
      return add_file("cls", std::as_bytes(std::span(text)));
  }
  if (is_text_like(field)) return add_file(field.name + ".txt", bytes);
  const std::string head = npy_head_of(field, bytes.size());
  add_file(field.name + ".npy", std::as_bytes(std::span(head)), bytes);
}

void WebShardWriter::append(const RecordView& record, std::string_view /*name*/,
                            std::span<const std::byte> /*jpeg_index*/) {
  for (std::size_t i = 0; i < fields_.size(); ++i) add_field(fields_[i], record.fields[i]);
  ++number_;
}

std::uint64_t WebShardWriter::records_in(const std::filesystem::path& path) {
  const std::unique_ptr<ArchiveFiles> files = list_archive(path);
  std::uint64_t records = 0;
  std::string latest;
  while (const std::optional<ArchiveFile> file = files->next()) {
    std::string key = file->path.substr(0, file->path.find('.'));
    if (key == latest) continue;
    latest = std::move(key);
    ++records;
  }
  return records;
}

std::uint64_t WebShardWriter::finish() {
  file_->append(kTarZeros);
  const std::uint64_t bytes = file_->size();
  file_->commit();
  return bytes;
}

}  // namespace headrace
