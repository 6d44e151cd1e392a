#include "headrace/devices/base/remote/url.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/access.h"
#include "headrace/tests/support/test.h"

namespace headrace::remote {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal_of(const std::string& text) {
  return test::message_of<DataError>([&] { parse_url(text); });
}

TEST(Urls, HaveTheirParts) {
  const Url plain = parse_url("http://h:81/a/b.tar?x=1");
  EXPECT_EQ(plain.host, "h:81");
  EXPECT_EQ(plain.path, "/a/b.tar?x=1");
  const Url object = parse_url("s3://bucket/a b/c#1.tar");
  EXPECT_TRUE(object.in_store());
  EXPECT_EQ(object.host, "bucket");
  EXPECT_EQ(object.path, "a b/c#1.tar");
  EXPECT_TRUE(is_url("s3://b"));
  EXPECT_FALSE(is_url("s3:/b"));
  EXPECT_FALSE(is_url("/http://b"));
}

TEST(Urls, ThatHoldSecretsAreRefusedWithoutShowingThem) {
  for (const char* text :
       {"https://ann:hunter2@h/x.tar", "s3://hunter2@b/x", "https://h/x.tar?X-Amz-Signature=hunter2",
        "https://h/x?sig=hunter2", "https://h/x?a=1&access_TOKEN=hunter2"}) {
    EXPECT_NE(refusal_of(text), "") << text;
    EXPECT_THAT(refusal_of(text), Not(HasSubstr("hunter2"))) << text;
  }
}

TEST(Urls, ThatNameNothingAreRefused) {
  for (const char* text :
       {"http://", "s3://", "s3:///key", "https:///x", "http://h/a b", "http://h/a#b", "s3://b$/x"}) {
    EXPECT_NE(refusal_of(text), "") << text;
  }
}

TEST(Urls, AreEncodedAsSignaturesWantThem) {
  EXPECT_EQ(percent_encoded("a b/~x+ü", true), "a%20b/~x%2B%C3%BC");
  EXPECT_EQ(percent_encoded("a/b", false), "a%2Fb");
  EXPECT_EQ(percent_decoded("a%20b+c%2B%zz%"), "a b c+%zz%");
}

TEST(ShardPatterns, CountWithTheDigitsOfTheFirst) {
  EXPECT_THAT(expand_shard_pattern("http://h/t-{08..10}.tar"),
              ElementsAre("http://h/t-08.tar", "http://h/t-09.tar", "http://h/t-10.tar"));
  EXPECT_THAT(expand_shard_pattern("s3://b/{1..2}-{0..1}"),
              ElementsAre("s3://b/1-0", "s3://b/1-1", "s3://b/2-0", "s3://b/2-1"));
  EXPECT_TRUE(is_shard_pattern("http://h/t-{08..10}.tar"));
  EXPECT_FALSE(is_shard_pattern("http://h/{a}/t.tar"));
  EXPECT_TRUE(is_below_shard_pattern("http://h/t-{0..1}/x"));
  for (const char* text :
       {"http://h/{3..1}", "http://h/{a..b}", "http://h/{0..999999999}", "http://h/{0..1}{0..", "http://h/{..}"}) {
    EXPECT_THROW(expand_shard_pattern(text), DataError) << text;
  }
}

TEST(StoreAccess, NamesPlacesOfObjects) {
  StoreAccess access{.region = "eu-west-1"};
  EXPECT_EQ(access.url_of(parse_url("s3://b/a b")), "https://b.s3.eu-west-1.amazonaws.com/a%20b");
  EXPECT_EQ(access.url_of(parse_url("s3://b.c/x")), "https://s3.eu-west-1.amazonaws.com/b.c/x");
  access.endpoint = "http://127.0.0.1:9";
  EXPECT_EQ(access.url_of(parse_url("s3://b/x")), "http://127.0.0.1:9/b/x");
}

}  // namespace
}  // namespace headrace::remote
