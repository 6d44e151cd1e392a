#include "headrace/train/records/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/sizes.h"

namespace headrace {
namespace {

using ParsedHeader = nlohmann::json;

constexpr const char* kDamageHint = "restore it from a copy, or use an earlier checkpoint";
constexpr const char* kOtherFileHint = "name a training record or a checkpoint: a file that a training wrote";

[[noreturn]] void refuse_file(const File& file, std::uint64_t offset, const std::string& why,
                              ErrorCode code = ErrorCode::kDataCorrupt) {
  throw DataError(code, why, {.source = file.path().string(), .offset = offset},
                  code == ErrorCode::kUnsupported ? kOtherFileHint : kDamageHint);
}

File open_file(const std::filesystem::path& path) {
  try {
    return File::open(path);
  } catch (const DataError& error) {
    const std::string_view message = error.message();
    const std::string source = path.string() + ": ";  // with which the message begins
    throw DataError(error.code(),
                    std::string(message.starts_with(source) ? message.substr(source.size()) : message),
                    error.location(), kOtherFileHint);
  }
}

std::uint64_t header_bytes(const File& file) {
  if (file.size() < tensor_header::kLengthBytes) {
    refuse_file(file, 0, fmt::format("is no record or checkpoint: it has {} bytes", file.size()),
                ErrorCode::kUnsupported);
  }
  std::byte bytes[tensor_header::kLengthBytes];
  file.read_exact(0, bytes);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < sizeof(bytes); ++i) length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  if (length > tensor_header::kMaxBytes) {
    refuse_file(file, 0, fmt::format("is no record or checkpoint: its header would have {} bytes", length),
                ErrorCode::kUnsupported);
  }
  if (length > file.size() - sizeof(bytes)) {
    refuse_file(file, file.size(), fmt::format("is cut short: its header has {} bytes", length));
  }
  return length;
}

std::string header_text(const File& file) {
  std::string header(header_bytes(file), '\0');
  file.read_exact(tensor_header::kLengthBytes, std::as_writable_bytes(std::span(header)));
  return header;
}

// Returns whether this is the header of a safetensors file that Headrace did not write. One of ours with damaged
// first bytes still has the name in its format.
bool is_others(const std::string& header) {
  return header.starts_with('{') && header.find("headrace") == std::string::npos && ParsedHeader::accept(header);
}

std::string read_header(const File& file, OtherFiles others) {
  using namespace tensor_header;
  std::string header = header_text(file);
  if (others == OtherFiles::kAccepted && is_others(header)) return header;
  if (header.size() < kStart.size() + kDigits || !header.starts_with(kStart)) {
    refuse_file(file, kLengthBytes, "is no record or checkpoint: its header does not begin as theirs do",
                ErrorCode::kUnsupported);
  }
  if (header.compare(kStart.size(), kDigits, checksum_of(header)) != 0) {
    refuse_file(file, kLengthBytes, "is damaged: the checksum of its header is wrong");
  }
  return header;
}

// Checks values even though the header's checksum covers them: anybody can compute one.
StoredTensor tensor_from(const File& file, const std::string& name, const ParsedHeader& json,
                         std::uint64_t payload, bool checked) {
  const auto wrong = [&](const std::string& why) {
    refuse_file(file, tensor_header::kLengthBytes, fmt::format("its header is wrong: tensor '{}' {}", name, why));
  };
  StoredTensor tensor{.name = name, .shape = {}, .checksums = {}};
  const auto dtype = tensor_header::dtype_named(json.at("dtype").get<std::string>());
  const auto offsets = json.at("data_offsets").get<std::array<std::uint64_t, 2>>();
  if (!dtype && checked) wrong("is of an unknown type");
  tensor.dtype = dtype.value_or(DType::kU8);
  auto extents = json.at("shape").get<std::vector<std::int64_t>>();
  if (!dtype && offsets[0] <= offsets[1] && offsets[1] <= kMaxSize) {
    extents = {static_cast<std::int64_t>(offsets[1] - offsets[0])};
  }
  if (extents.size() > Shape::kMaxRank) wrong("has too many axes");
  if (std::ranges::any_of(extents, [](std::int64_t extent) { return extent < 0; })) wrong("has a negative extent");
  tensor.shape = Shape(extents);
  const auto bytes = checked_product({static_cast<std::uint64_t>(tensor.shape.elements()), size_of(tensor.dtype)});
  if (!bytes || offsets[1] < offsets[0] || offsets[1] - offsets[0] != *bytes || offsets[1] > kMaxSize - payload) {
    wrong("has offsets that are not its size apart");
  }
  tensor.offset = payload + offsets[0];
  tensor.bytes = *bytes;
  return tensor;
}

}  // namespace

bool is_other_tensor_file(const std::filesystem::path& path) {
  try {
    return is_others(header_text(File::open(path)));
  } catch (const DataError&) {
    return false;
  }
}

std::size_t StoredTensor::block_bytes(std::size_t block) const noexcept {
  return static_cast<std::size_t>(std::min<std::uint64_t>(kTensorBlock, bytes - block * kTensorBlock));
}

TensorFile::TensorFile(const std::filesystem::path& path, OtherFiles others) : file_(open_file(path)) {
  std::string header = read_header(file_, others);
  checked_ = header.starts_with(tensor_header::kStart);
  try {
    parse(header);
  } catch (const ParsedHeader::exception& error) {
    refuse_file(file_, tensor_header::kLengthBytes, fmt::format("its header is wrong: {}", error.what()));
  } catch (const ConfigError& error) {
    refuse_file(file_, tensor_header::kLengthBytes, "its header is wrong: " + error.message());
  }
}

void TensorFile::parse(std::string& header) {
  static constexpr int kMaxDepth = 8;
  const std::uint64_t payload = tensor_header::kLengthBytes + header.size();
  const auto shallow = [&](int depth, ParsedHeader::parse_event_t, ParsedHeader&) {
    if (depth > kMaxDepth) refuse_file(file_, tensor_header::kLengthBytes, "its header is nested too deep");
    return true;
  };
  const ParsedHeader parsed = ParsedHeader::parse(header, shallow);
  ParsedHeader checksums;
  if (checked_) {
    texts_ = parsed.at(std::string(tensor_header::kMetadata)).get<RecordTexts>();
    checksums = ParsedHeader::parse(text(std::string(tensor_header::kChecksums)), shallow);
  }
  std::vector<StoredTensor> all;
  for (const auto& [name, json] : parsed.items()) {
    if (name != tensor_header::kMetadata) all.push_back(tensor_from(file_, name, json, payload, checked_));
  }
  std::ranges::sort(all, {}, &StoredTensor::offset);
  std::uint64_t end = payload;
  for (StoredTensor& tensor : all) {
    if (tensor.offset != end) refuse_file(file_, end, "its header is wrong: no tensor begins here");
    end += tensor.bytes;
    if (end > file_.size()) {
      refuse_file(file_, file_.size(),
                  fmt::format("is cut short within tensor '{}', which ends at {}", tensor.name, end));
    }
    const auto blocks = static_cast<std::size_t>((tensor.bytes + kTensorBlock - 1) / kTensorBlock);
    tensor.checksums =
        checked_ ? checksums.at(tensor.name).get<std::vector<std::string>>() : std::vector<std::string>(blocks);
    if (tensor.checksums.size() != blocks) {
      refuse_file(file_, tensor.offset,
                  fmt::format("its header is wrong: checksums of tensor '{}' are missing", tensor.name));
    }
    if (!tensor.name.starts_with(tensor_header::kPadding)) tensors_.push_back(std::move(tensor));
  }
  if (end != file_.size()) refuse_file(file_, end, "has bytes after its last tensor");
}

const std::string& TensorFile::text(const std::string& name) const {
  if (const auto found = texts_.find(name); found != texts_.end()) return found->second;
  refuse_file(file_, tensor_header::kLengthBytes, "its header has no '" + name + "'");
}

const StoredTensor* TensorFile::find(const std::string& name) const noexcept {
  const auto found = std::ranges::find(tensors_, name, &StoredTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

void TensorFile::read(const StoredTensor& tensor, std::span<std::byte> into) const {
  for (std::size_t block = 0; block < tensor.blocks(); ++block) {
    read_block(tensor, block, into.subspan(block * kTensorBlock, tensor.block_bytes(block)));
  }
}

void TensorFile::read_block(const StoredTensor& tensor, std::size_t block, std::span<std::byte> into) const {
  const std::uint64_t offset = tensor.offset + block * kTensorBlock;
  file_.read_exact(offset, into);
  if (!checked_ || xxh3_128_hex(into) == tensor.checksums[block]) return;
  refuse_file(file_, offset, fmt::format("is damaged: the checksum of tensor '{}' is wrong", tensor.name));
}

}  // namespace headrace
