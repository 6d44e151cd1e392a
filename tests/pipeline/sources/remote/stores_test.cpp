// Stores other than S3: Google's, Azure's and Hugging Face's, each with its URLs, credentials and lists.
#include "headrace/tests/pipeline/sources/remote/remote_fixture.h"

namespace headrace::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Stores : public RemoteTest {
 protected:
  Stores() {
    for (int shard = 0; shard < kShards; ++shard) {
      const std::string name = shard_name(shard);
      TarBuilder tar;
      for (int i = 0; i < 6 + shard; ++i) {
        tar.add(std::to_string(i) + ".jpg", noisy_jpeg(static_cast<std::uint64_t>(10 * shard + i)))
            .add(std::to_string(i) + ".cls", to_bytes(std::to_string(shard)));
      }
      shards_.push_back(tar.finish());
      local_.write("set/" + name, shards_.back());
    }
    expected_ = stream_of(decoded(local_ / "set"));
  }
  ~Stores() override {
    for (const char* name : {"GS_ENDPOINT_URL", "GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY",
                             "CLOUDSDK_AUTH_ACCESS_TOKEN", "AZURE_STORAGE_SERVICE_ENDPOINT",
                             "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_SAS_TOKEN", "HF_ENDPOINT", "HF_TOKEN"}) {
      ::unsetenv(name);
    }
  }

  static constexpr int kShards = 3;
  static std::string shard_name(int shard) { return "train-" + std::to_string(shard) + ".tar"; }

  void serve(const std::string& prefix) {
    for (int shard = 0; shard < kShards; ++shard)
      server_.serve(prefix + shard_name(shard), text_of(shards_[static_cast<std::size_t>(shard)]));
  }
  std::string sent_with(const std::string& header) const {
    const auto requests = server_.requests();
    const auto found = requests.back().headers.find(header);
    return found == requests.back().headers.end() ? "" : found->second;
  }

  std::vector<Bytes> shards_;
  std::vector<BatchDigest> expected_;
};

TEST_F(Stores, OfGoogleIsReadWithKeysOrAToken) {
  ::setenv("GS_ENDPOINT_URL", server_.url().c_str(), 1);
  serve("/bucket/set/");
  EXPECT_EQ(stream_of(decoded("gs://bucket/set/")), expected_);
  EXPECT_EQ(sent_with("authorization"), "");
  serve("/bucket/private/");
  serve("/bucket/keys/");
  server_.want_signatures();
  EXPECT_THAT(error_of([] { decoded("gs://bucket/private/train-{0..2}.tar"); }).what(),
              HasSubstr("GS_ACCESS_KEY_ID"));
  ::setenv("CLOUDSDK_AUTH_ACCESS_TOKEN", "hunter2", 1);
  EXPECT_EQ(stream_of(decoded("gs://bucket/private/train-{0..2}.tar")), expected_);
  EXPECT_EQ(sent_with("authorization"), "Bearer hunter2");
  ::setenv("GS_ACCESS_KEY_ID", "GOOG1", 1);
  ::setenv("GS_SECRET_ACCESS_KEY", "hunter2", 1);
  EXPECT_EQ(stream_of(decoded("gs://bucket/keys/train-{0..2}.tar")), expected_);
  EXPECT_THAT(sent_with("authorization"), AllOf(HasSubstr("GOOG1/"), HasSubstr("/auto/s3/")));
}

std::string azure_list(const std::vector<std::pair<std::string, std::size_t>>& blobs) {
  std::string xml = R"(<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="photos"><Blobs>)";
  for (const auto& [name, size] : blobs) {
    xml += "<Blob><Name>" + name + "</Name><Properties><Etag>1</Etag><Content-Length>" + std::to_string(size) +
           "</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>";
  }
  return xml + "</Blobs><NextMarker /></EnumerationResults>";
}

TEST_F(Stores, OfAzureIsReadWithASharedAccessSignature) {
  EXPECT_THAT(error_of([] { decoded("az://photos/set/"); }).what(), HasSubstr("AZURE_STORAGE_ACCOUNT"));
  ::setenv("AZURE_STORAGE_SERVICE_ENDPOINT", server_.url().c_str(), 1);
  ::setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2021&sig=hunter2%3D", 1);
  serve("/photos/set/");
  std::vector<std::pair<std::string, std::size_t>> blobs;
  for (int shard = 0; shard < kShards; ++shard)
    blobs.emplace_back("set/" + shard_name(shard), shards_[static_cast<std::size_t>(shard)].size());
  server_.serve("/photos", azure_list(blobs));
  const Dataset dataset = decoded("az://photos/set/");
  EXPECT_EQ(stream_of(dataset), expected_);
  const auto requests = server_.requests();
  EXPECT_THAT(requests.front().target,
              AllOf(HasSubstr("comp=list"), HasSubstr("prefix=set%2F"), HasSubstr("restype=container")));
  for (const ServedRequest& request : requests) EXPECT_THAT(request.target, HasSubstr("sv=2021&sig=hunter2%3D"));
  EXPECT_EQ(sent_with("if-match"), "\"1\"") << "as the list says without quotes";
  EXPECT_THAT(dataset.to_json() + dataset.explain(), Not(HasSubstr("hunter2")));
  server_.remove("/photos/set/train-1.tar");
  EXPECT_THAT(error_of([&] { stream_of(dataset); }).what(),
              AllOf(HasSubstr("az://photos/set/train-1.tar"), Not(HasSubstr("hunter2"))));
}

// Files of the hub lie with another host, which must not get the token.
TEST_F(Stores, OfHuggingFaceIsReadThroughItsRedirects) {
  HttpServer network;
  ::setenv("HF_ENDPOINT", server_.url().c_str(), 1);
  ::setenv("HF_TOKEN", "hunter2", 1);
  std::string first = "[{\"type\":\"directory\",\"oid\":\"0\",\"size\":0,\"path\":\"set/more\"}", second = "[";
  for (int shard = 0; shard < kShards; ++shard) {
    const Bytes& bytes = shards_[static_cast<std::size_t>(shard)];
    const std::string entry = "{\"type\":\"file\",\"oid\":\"" + std::to_string(shard) +
                              "a\",\"size\":" + std::to_string(bytes.size()) + ",\"path\":\"set/" +
                              shard_name(shard) + "\"}";
    if (shard < 2) {
      first += "," + entry;
    } else {
      second += entry;
    }
    network.serve("/" + shard_name(shard), text_of(bytes));
    server_.redirect("/datasets/ann/photos/resolve/main/set/" + shard_name(shard),
                     network.url() + "/" + shard_name(shard));
  }
  const auto list = [&](const std::string& path, const std::string& json, const std::string& headers) {
    server_.serve(path,
                  ServedFile{.bytes = std::make_shared<const std::string>(json), .etag = "", .headers = headers});
  };
  list("/api/datasets/ann/photos/tree/main/set", first + "]",
       "Link: <" + server_.url() + "/page2?cursor=x>; rel=\"next\"\r\n");
  list("/page2", second + "]", "");

  const Dataset dataset = decoded("hf://datasets/ann/photos/set/");
  EXPECT_EQ(stream_of(dataset), expected_);
  EXPECT_EQ(stream_of(decoded("hf://datasets/ann/photos@main/set/train-{0..2}.tar")), expected_);
  for (const ServedRequest& request : server_.requests()) {
    EXPECT_EQ(request.headers.at("authorization"), "Bearer hunter2") << request.target;
  }
  for (const ServedRequest& request : network.requests()) EXPECT_FALSE(request.headers.contains("authorization"));
  EXPECT_THAT(dataset.to_json() + dataset.explain(), Not(HasSubstr("hunter2")));
  EXPECT_EQ(path_kind("hf://datasets/ann/photos/none"), PathKind::kMissing);
  EXPECT_THROW(decoded("hf://datasets/ann"), DataError);
  EXPECT_THROW(decoded("hf://models/ann/photos/a.tar"), DataError);

  // A list that leads elsewhere is not followed: the token would go there.
  list("/api/datasets/ann/other/tree/main/set", "[]", "Link: <http://elsewhere/x>; rel=\"next\"\r\n");
  EXPECT_THAT(error_of([] { decoded("hf://datasets/ann/other/set/"); }).what(), HasSubstr("elsewhere"));
}

}  // namespace
}  // namespace headrace::test
