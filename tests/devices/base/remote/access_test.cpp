#include "headrace/devices/base/remote/access.h"

#include "headrace/devices/base/remote/listing.h"
#include "headrace/tests/support/test.h"

namespace headrace::remote {
namespace {

TEST(HubPaths, HaveARepositoryARevisionAndAFile) {
  const auto parts = [](const char* path) {
    const auto found = hub_path(path);
    return found ? found->repository + "|" + found->revision + "|" + found->file : "none";
  };
  EXPECT_EQ(parts("o/n/a/b.tar"), "o/n|main|a/b.tar");
  EXPECT_EQ(parts("o/n"), "o/n|main|");
  EXPECT_EQ(parts("o/n/"), "o/n|main|");
  EXPECT_EQ(parts("o/n@v1.0/x"), "o/n|v1.0|x");
  EXPECT_EQ(parts("o/n@refs/convert/parquet/x/y"), "o/n|refs/convert/parquet|x/y");
  EXPECT_EQ(parts("o"), "none");
  EXPECT_EQ(parts("o/@main/x"), "none");
  EXPECT_EQ(parts("o/n@/x"), "none");
}

TEST(StoreAccess, NamesPlacesAndPages) {
  const StoreAccess hub{.store = Scheme::kHf, .endpoint = "https://h"};
  const Url file = parse_url("hf://datasets/o/n@refs/pr/3/a b.tar");
  EXPECT_EQ(hub.url_of(file), "https://h/datasets/o/n/resolve/refs%2Fpr%2F3/a%20b.tar");
  EXPECT_EQ(hub.page_url(file, "o/n/d/", ""), "https://h/api/datasets/o/n/tree/main/d?limit=1000&recursive=true");
  const StoreAccess azure{.store = Scheme::kAz, .endpoint = "https://a"};
  EXPECT_EQ(azure.page_url(parse_url("az://c/x"), "p/", "m&1"),
            "https://a/c?comp=list&marker=m%261&maxresults=5000&prefix=p%2F&restype=container");
  const StoreAccess google{.store = Scheme::kGs, .endpoint = "https://g"};
  EXPECT_EQ(google.url_of(parse_url("gs://b/k/1")), "https://g/b/k/1");
}

TEST(ListingPages, OfAzureSayHowTheyGoOn) {
  const auto page = parse_listing_page(Scheme::kAz, test::to_bytes(R"(<EnumerationResults><Blobs>
<Blob><Name>d</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob>
<Blob><Name Encoded="true">d/a%20b</Name><Properties><Etag>"0x1"</Etag><Content-Length>7</Content-Length></Properties></Blob>
</Blobs><NextMarker>m</NextMarker></EnumerationResults>)"),
                                       "az://c/d/");
  ASSERT_EQ(page.listed.size(), 1U);
  EXPECT_EQ(page.listed[0].key, "d/a b");
  EXPECT_EQ(page.listed[0].etag, "\"0x1\"");
  EXPECT_EQ(page.next, "m");
}

TEST(ListingPages, OfAnotherKindAreRefused) {
  for (const Scheme store : {Scheme::kS3, Scheme::kGs, Scheme::kAz, Scheme::kHf}) {
    for (const char* text :
         {"", "{}", "<html/>", "[{\"type\":\"file\"}]", "[{\"type\":\"file\",\"path\":\"a\",\"size\":-1}]",
          "<EnumerationResults><Blobs><Blob><Name>a</Name></Blob></Blobs></EnumerationResults>"}) {
      EXPECT_THROW(parse_listing_page(store, test::to_bytes(text), "s3://b/"), DataError) << text;
    }
  }
}

}  // namespace
}  // namespace headrace::remote
