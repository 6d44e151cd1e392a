// Objects of stores: whole or not at all, in parts or in one piece, with retries, and with errors that say what to
// do.
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/remote.h"
#include "headrace/tests/support/http_server.h"

namespace headrace::test {
namespace {

class Objects : public ::testing::Test {
 protected:
  Objects() {
    remote::set_timing({.first_pause = std::chrono::milliseconds(1),
                        .max_pause = std::chrono::milliseconds(10),
                        .stall = std::chrono::seconds(10),
                        .deadline = std::chrono::seconds(60)});
    ::setenv("AWS_ENDPOINT_URL", server_.url().c_str(), 1);
    ::setenv("AZURE_STORAGE_SERVICE_ENDPOINT", server_.url().c_str(), 1);
  }
  ~Objects() override {
    remote::set_timing({});
    for (const char* name :
         {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_SERVICE_ENDPOINT"})
      ::unsetenv(name);
  }

  // Bytes that differ everywhere.
  static std::string text_of(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
    return text;
  }
  static void write(const std::string& url, const std::string& text) {
    FileWriter writer(url);
    const std::size_t piece = 1'000'000;
    for (std::size_t at = 0; at < text.size(); at += piece)
      writer.append(std::as_bytes(std::span(text).subspan(at, std::min(piece, text.size() - at))));
    EXPECT_EQ(writer.size(), text.size());
    writer.commit();
  }

  HttpServer server_;
};

TEST_F(Objects, AreThereAsTheyWereWritten) {
  for (const char* scheme : {"s3", "az"}) {
    for (const std::size_t size : std::initializer_list<std::size_t>{0, 5, 8 << 20, 50'000'000}) {
      const std::string url = scheme + std::string("://bucket/a b/") + std::to_string(size), text = text_of(size);
      write(url, text);
      EXPECT_TRUE(server_.file("/bucket/a b/" + std::to_string(size)) == text) << url;
      EXPECT_EQ(File::open(url).size(), size);
      write(url, "new");
      EXPECT_EQ(path_kind(url), PathKind::kFile);
      EXPECT_EQ(read_whole_file(url).size(), 3U) << "and not what was read before";
    }
  }
  EXPECT_EQ(server_.open_uploads(), 0U);
}

TEST_F(Objects, SurviveRequestsThatFail) {
  server_.misbehave([](const ServedRequest& request) {
    return request.number % 3 == 0 ? Misbehaviour::kUnavailable : Misbehaviour::kNone;
  });
  const std::string text = text_of(40'000'000);
  write("s3://bucket/large", text);
  EXPECT_TRUE(server_.file("/bucket/large") == text);
}

TEST_F(Objects, AreNotThereBeforeTheyAreWhole) {
  {
    FileWriter writer("s3://bucket/never");
    const std::string text = text_of(20'000'000);
    writer.append(std::as_bytes(std::span(text)));
    EXPECT_EQ(server_.open_uploads(), 1U);
  }
  while (server_.open_uploads() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(server_.file("/bucket/never"));
}

TEST_F(Objects, AreSignedWithTheirBytes) {
  ::setenv("AWS_ACCESS_KEY_ID", "key", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  server_.want_signatures();
  write("s3://bucket/signed", "abc");
  const ServedRequest request = server_.requests().back();
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.headers.at("x-amz-content-sha256"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_THAT(request.headers.at("authorization"), HasSubstr("x-amz-content-sha256"));
}

TEST_F(Objects, AreRemoved) {
  write("s3://bucket/one", "1");
  EXPECT_EQ(path_kind("s3://bucket/one"), PathKind::kFile);
  remove_file("s3://bucket/one");
  EXPECT_EQ(path_kind("s3://bucket/one"), PathKind::kMissing);
  remove_file("s3://bucket/none");
}

TEST_F(Objects, AreRefusedWithAReason) {
  for (const char* url : {"https://host/a", "hf://datasets/a/b/c"})
    EXPECT_THAT(message_of([&] { FileWriter{url}; }), HasSubstr("nothing can be written there")) << url;
  for (const char* url : {"s3://bucket", "s3://bucket/", "s3://bucket/a/"})
    EXPECT_THAT(error_of([&] { FileWriter{url}; }).what(), HasSubstr("names no object")) << url;
  server_.want_signatures();
  EXPECT_THAT(error_of([&] { write("s3://bucket/a", "1"); }).what(),
              AllOf(HasSubstr("s3://bucket/a"), HasSubstr("access is denied"), HasSubstr("AWS_ACCESS_KEY_ID")));
}

}  // namespace
}  // namespace headrace::test
