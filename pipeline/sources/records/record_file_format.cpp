#include "headrace/pipeline/sources/records/record_file_format.h"

#include <algorithm>
#include <bit>
#include <exception>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored as the machine keeps them");

// The format's numbers are the enumeration's.
static_assert(static_cast<int>(DType::kU8) == 0 && static_cast<int>(DType::kI32) == 1 &&
              static_cast<int>(DType::kI64) == 2 && static_cast<int>(DType::kF16) == 3 &&
              static_cast<int>(DType::kBF16) == 4 && static_cast<int>(DType::kF32) == 5);
constexpr std::uint8_t kLastType = 5;

constexpr std::size_t kFixedBytes = 16;  // before the description
constexpr std::size_t kChecksumBytes = 8;
constexpr std::int64_t kLongestAxis = std::int64_t{1} << 32;

void write_field(const Field& field, ByteWriter& out) {
  out.text(field.name)
      .u8(static_cast<std::uint8_t>(field.dtype))
      .u8(field.encoding == Encoding::kImage                ? 1
          : layout_of(field) == ImageLayout::kChannelsFirst ? 2
                                                            : 0)
      .u8(static_cast<std::uint8_t>(field.shape.rank()));
  for (const std::int64_t extent : field.shape.extents()) out.u64(static_cast<std::uint64_t>(extent));
}

Shape read_shape(ByteReader& in, Encoding encoding) {
  const std::uint8_t rank = in.u8();
  if (rank > Shape::kMaxRank) in.fail("a field of rank " + std::to_string(rank));
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  std::uint64_t elements = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto extent = static_cast<std::int64_t>(in.u64());
    extents[axis] = extent;
    if (extent == Shape::kDynamic && (encoding == Encoding::kImage || axis == 0)) continue;
    if (extent < 0 || extent > kLongestAxis) in.fail("a field's extent of " + std::to_string(extent));
    if (extent != 0 && elements > static_cast<std::uint64_t>(kLongestAxis / extent)) in.fail("a field too large");
    elements *= static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1));
  }
  return Shape(std::span(extents).first(rank));
}

Field read_field_header(ByteReader& in) {
  Field field;
  field.name = in.text();
  const std::uint8_t type = in.u8();
  if (type > kLastType) in.fail("element type " + std::to_string(type) + " is not known");
  field.dtype = static_cast<DType>(type);
  const std::uint8_t encoding = in.u8();
  if (encoding > 2) in.fail("encoding " + std::to_string(encoding) + " is not known");
  field.encoding = encoding == 1 ? Encoding::kImage : Encoding::kRaw;
  if (encoding == 2) field.layout = ImageLayout::kChannelsFirst;  // raw elements
  field.shape = read_shape(in, field.encoding);
  return field;
}

RecordFileHeader parse_description(ByteReader in) {
  RecordFileHeader header;
  const std::uint32_t fields = in.u32();
  if (fields == 0 || fields > kMaxFields) in.fail(std::to_string(fields) + " fields");
  for (std::uint32_t i = 0; i < fields; ++i) header.fields.push_back(read_field_header(in));
  const std::uint32_t classes = in.u32();
  // Not reserved: the count is not trusted until each class is read.
  for (std::uint32_t i = 0; i < classes; ++i) header.classes.push_back(in.text());
  const std::uint32_t splits = in.u32();
  if (splits == 0 || splits > 2) in.fail(std::to_string(splits) + " splits");
  for (std::uint32_t i = 0; i < splits; ++i) {
    const std::uint8_t which = in.u8();
    if (which > 1) in.fail("split " + std::to_string(which) + " is neither train nor test");
    RecordFileHeader::SplitEntry entry{.split = which == 0 ? Split::kTrain : Split::kTest};
    entry.records = in.u64();
    entry.origin = in.u64();
    if (i == 1 && entry.split == header.splits[0].split) in.fail("the same split twice");
    header.splits.push_back(entry);
  }
  if (in.left() != 0) in.fail("bytes left over after the description");
  return header;
}

[[noreturn]] void fail_header(const File& file, const std::string& what, std::uint64_t offset,
                              std::string hint = {}) {
  throw DataError(ErrorCode::kDataCorrupt, what, {.source = file.path().string(), .offset = offset},
                  std::move(hint));
}

constexpr std::size_t kFooterBytes = 48;
constexpr std::size_t kCheckedFooterBytes = 32;

// Records that are checked together; the bytes of names before each block are kept.
constexpr std::uint64_t kBlockRecords = 4096;

struct Footer {
  std::uint64_t index_offset = 0, index_bytes = 0, index_checksum = 0, records = 0;
};

[[noreturn]] void fail_index(const std::filesystem::path& path, const std::string& what, std::uint64_t offset) {
  throw DataError(ErrorCode::kDataCorrupt, what, {.source = path.string(), .offset = offset},
                  "the file was cut short, changed or damaged: convert the data again");
}

Footer read_footer(const File& file, std::uint64_t first) {
  if (file.size() < first || file.size() - first < kFooterBytes)
    fail_index(file.path(), "ends before its footer", file.size());
  const std::uint64_t at = file.size() - kFooterBytes;
  std::array<std::byte, kFooterBytes> bytes{};
  file.read_exact(at, bytes);
  ByteReader in(bytes, file.path().string(), at);
  const Footer footer{
      .index_offset = in.u64(), .index_bytes = in.u64(), .index_checksum = in.u64(), .records = in.u64()};
  const std::uint64_t checksum = in.u64();
  const std::span<const std::byte> magic = in.raw(RecordFileHeader::kMagic.size());
  if (!std::equal(magic.rbegin(), magic.rend(), RecordFileHeader::kMagic.begin())) {
    fail_index(file.path(), "has no footer where it ends", at);
  }
  if (checksum != xxh3(std::span(bytes).first(kCheckedFooterBytes))) {
    fail_index(file.path(), "the footer does not agree with its checksum", at);
  }
  if (footer.index_offset < first || footer.index_offset > at || footer.index_bytes != at - footer.index_offset) {
    fail_index(file.path(), "the index does not lie between records and footer", at);
  }
  return footer;
}

}  // namespace

FieldSize::FieldSize(const Field& field) noexcept
    : is_any_(field.encoding == Encoding::kImage), varies_(field.shape.is_dynamic()) {
  if (is_any_) return;
  entry_ = size_of(field.dtype);
  for (const std::int64_t extent : field.shape.extents().subspan(varies_ ? 1 : 0))
    entry_ *= static_cast<std::uint64_t>(extent);
}

std::uint64_t RecordFileHeader::records() const noexcept {
  std::uint64_t sum = 0;
  for (const SplitEntry& entry : splits) sum += entry.records;
  return sum;
}

std::vector<std::byte> RecordFileHeader::encode() const {
  ByteWriter description;
  description.u32(static_cast<std::uint32_t>(fields.size()));
  for (const Field& field : fields) write_field(field, description);
  description.u32(static_cast<std::uint32_t>(classes.size()));
  for (const std::string& name : classes) description.text(name);
  description.u32(static_cast<std::uint32_t>(splits.size()));
  for (const SplitEntry& entry : splits) {
    description.u8(entry.split == Split::kTrain ? 0 : 1).u64(entry.records).u64(entry.origin);
  }
  ByteWriter header;
  header.raw(kMagic).u32(version).u32(static_cast<std::uint32_t>(description.bytes().size()));
  header.raw(description.bytes());
  header.u64(xxh3(header.bytes()));
  return {header.bytes().begin(), header.bytes().end()};
}

RecordFileHeader RecordFileHeader::read(const File& file, std::uint64_t& bytes) {
  std::array<std::byte, kFixedBytes> fixed{};
  if (file.size() < fixed.size()) fail_header(file, "is cut short within its header", file.size());
  file.read_exact(0, fixed);
  ByteReader start(fixed, file.path().string(), 0);
  if (!std::ranges::equal(start.raw(kMagic.size()), kMagic))
    fail_header(file, "is no record file by its first bytes", 0);
  const std::uint32_t version = start.u32();
  const std::uint64_t description = start.u32();
  if (version != kVersion && version != kWithoutJpegIndexes) {
    throw DataError(ErrorCode::kUnsupported,
                    "is a record file of version " + std::to_string(version) + ", understood are versions " +
                        std::to_string(kWithoutJpegIndexes) + " and " + std::to_string(kVersion),
                    {.source = file.path().string(), .offset = kMagic.size()}, "convert the data again");
  }
  if (description > file.size() - kFixedBytes || file.size() - kFixedBytes - description < kChecksumBytes) {
    fail_header(file, "is cut short within its header", file.size());
  }
  const std::size_t checked = kFixedBytes + static_cast<std::size_t>(description);
  std::vector<std::byte> whole(checked + kChecksumBytes);
  file.read_exact(0, whole);
  const std::span<const std::byte> front = std::span(whole).first(checked);
  if (ByteReader(std::span(whole).subspan(checked), file.path().string(), checked).u64() != xxh3(front)) {
    fail_header(file, "the header does not agree with its checksum", 0,
                "the file was changed or damaged: convert the data again");
  }
  bytes = whole.size();
  RecordFileHeader header =
      parse_description(ByteReader(front.subspan(kFixedBytes), file.path().string(), kFixedBytes));
  header.version = version;
  return header;
}

std::uint32_t RecordFileHeader::version_for(const Fields& fields) noexcept {
  const auto may_be_jpeg = [](const Field& field) {  // a mask is a PNG
    return field.encoding == Encoding::kImage && (field.shape.rank() != 3 || field.shape[2] != 1);
  };
  return std::ranges::any_of(fields, may_be_jpeg) ? kVersion : kWithoutJpegIndexes;
}

void RecordIndexBuilder::add(std::uint64_t offset, std::uint64_t checksum,
                             std::span<const std::uint64_t> field_bytes, std::string_view name,
                             std::uint64_t jpeg_bytes) {
  entries_.u64(offset).u64(checksum).u64(name.size());
  if (has_jpeg_indexes_) entries_.u64(jpeg_bytes);
  for (const std::uint64_t bytes : field_bytes) entries_.u64(bytes);
  names_ += name;
  ++size_;
}

std::vector<std::byte> RecordIndexBuilder::encode(std::uint64_t offset) const {
  ByteWriter index;
  index.raw(entries_.bytes()).raw(std::as_bytes(std::span(names_)));
  ByteWriter footer;
  footer.u64(offset).u64(index.bytes().size()).u64(xxh3(index.bytes())).u64(size());
  footer.u64(xxh3(footer.bytes()));
  std::array<std::byte, RecordFileHeader::kMagic.size()> end = RecordFileHeader::kMagic;
  std::ranges::reverse(end);
  index.raw(footer.bytes()).raw(end);
  return {index.bytes().begin(), index.bytes().end()};
}

RecordFileIndex::RecordFileIndex(const File& file, const RecordFileHeader& header, std::uint64_t first)
    : fields_(header.fields.size()), numbers_(kNumbers + (header.has_jpeg_indexes() ? 1 : 0)), first_(first) {
  const Footer footer = read_footer(file, first);
  std::uint64_t promised = 0;
  for (const RecordFileHeader::SplitEntry& split : header.splits) {
    if (split.records > footer.records - promised)
      fail_index(file.path(), "header and footer disagree on the number of records", 0);
    promised += split.records;
  }
  if (promised != footer.records || footer.records > footer.index_bytes / entry_bytes()) {
    fail_index(file.path(), "header, footer and index disagree on the number of records", footer.index_offset);
  }
  bytes_ = FilePart(file, footer.index_offset, footer.index_bytes);
  index_offset_ = footer.index_offset;
  checksum_ = footer.index_checksum;
  records_ = footer.records;
}

void RecordFileIndex::check(const std::filesystem::path& path, const RecordFileHeader& header) {
  const std::uint64_t blocks = (records_ + kBlockRecords - 1) / kBlockRecords;
  names_before_.resize(static_cast<std::size_t>(blocks));
  const std::vector<FieldSize> sizes(header.fields.begin(), header.fields.end());
  const std::span<const std::byte> names = bytes_.bytes().subspan(records_ * entry_bytes());
  std::exception_ptr entry_error;  // reported if the checksum is right
  Xxh3 hash;
  std::uint64_t at = first_, name_bytes = 0;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const std::uint64_t begin = block * kBlockRecords, end = std::min(records_, begin + kBlockRecords);
    hash.update(bytes_.bytes().subspan(begin * entry_bytes(), (end - begin) * entry_bytes()));
    names_before_[static_cast<std::size_t>(block)] = name_bytes;
    try {
      if (entry_error == nullptr) check_block(path, header, sizes, {begin, end}, at, name_bytes);
    } catch (const DataError&) {
      entry_error = std::current_exception();
    }
  }
  hash.update(names);
  if (hash.value() != checksum_) fail_index(path, "the index does not agree with its checksum", index_offset_);
  if (entry_error != nullptr) std::rethrow_exception(entry_error);
  if (at != index_offset_)
    fail_index(path, "there are bytes between the last record and the index", index_offset_);
  if (name_bytes != names.size()) fail_index(path, "there are bytes left over after the names", index_offset_);
}

// Checks records that begin at `at`, and whose names follow `names` others' bytes; moves both on.
void RecordFileIndex::check_block(const std::filesystem::path& path, const RecordFileHeader& header,
                                  std::span<const FieldSize> sizes,
                                  std::pair<std::uint64_t, std::uint64_t> records, std::uint64_t& at,
                                  std::uint64_t& names) const {
  const auto fail = [&](std::uint64_t record, const std::string& what) {
    fail_index(path, what, index_offset_ + record * entry_bytes());
  };
  const std::uint64_t max_names = bytes_.bytes().size() - records_ * entry_bytes();
  const std::byte* next = bytes_.bytes().data() + records.first * entry_bytes();
  const auto take = [&next] {
    std::uint64_t value = 0;
    std::memcpy(&value, next, sizeof value);
    next += sizeof value;
    return value;
  };
  for (std::uint64_t record = records.first; record < records.second; ++record) {
    const std::uint64_t offset = take(), checksum [[maybe_unused]] = take(), name = take();
    if (offset != at)
      fail(record, "record " + std::to_string(record) + " does not begin where the one before ends");
    if (name > max_names - names) fail(record, "the name of record " + std::to_string(record) + " is too long");
    names += name;
    const std::uint64_t jpeg = numbers_ == kNumbers ? 0 : take();
    for (std::size_t field = 0; field < sizes.size(); ++field) {
      const std::uint64_t length = take();
      if (length > index_offset_ - at)
        fail(record, "record " + std::to_string(record) + " reaches into the index");
      if (!sizes[field].allows(length)) {
        fail(record, "field '" + header.fields[field].name + "' of record " + std::to_string(record) + " has " +
                         std::to_string(length) + " bytes, not those of " +
                         header.fields[field].shape.to_string());
      }
      at += length;
    }
    if (jpeg > index_offset_ - at)
      fail(record, "the JPEG index of record " + std::to_string(record) + " reaches into the index");
    at += jpeg;
  }
}

std::uint64_t RecordFileIndex::bytes(std::uint64_t record) const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t field = 0; field < fields_; ++field) sum += field_bytes(record, field);
  return sum;
}

std::string_view RecordFileIndex::name(std::uint64_t record) const noexcept {
  std::uint64_t begin = names_before_[static_cast<std::size_t>(record / kBlockRecords)];
  for (std::uint64_t before = record / kBlockRecords * kBlockRecords; before < record; ++before)
    begin += number(before, 2);
  const auto text = bytes_.bytes().subspan(static_cast<std::size_t>(records_ * entry_bytes() + begin));
  return {reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(number(record, 2))};
}

}  // namespace headrace
