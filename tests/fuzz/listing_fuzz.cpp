// What stores answer when they are asked what they hold: S3's and Azure's XML, Hugging Face's JSON.
#include <cstdlib>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote/listing.h"
#include "headrace/tests/fuzz/fuzz_target.h"

namespace headrace::fuzz {

std::vector<test::Bytes> seeds() {
  return {test::to_bytes(R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>photos</Name><Prefix>train/</Prefix>
<KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
<Contents><Key>train/a%20b.tar</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>
<ETag>&quot;9b2cf535f27731c974343645a3985328&quot;</ETag><Size>10240</Size></Contents>
<Contents><Key>train/0.tar</Key><Size>0</Size></Contents>
<NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J</NextContinuationToken></ListBucketResult>)"),
          test::to_bytes(R"(<ListBucketResult><IsTruncated>false</IsTruncated>
<Contents><Key>x</Key><Size>18446744073709551615</Size><!-- the largest --></Contents>
<Contents><Key><![CDATA[b&c/]]></Key><Size>0</Size></Contents>
</ListBucketResult>)"),
          test::to_bytes(R"(<EnumerationResults ContainerName="c"><Blobs><Blob><Name>train/0.tar</Name><Properties>
<Etag>0x8D</Etag><Content-Length>10240</Content-Length></Properties></Blob><Blob><Name Encoded="true">a%20b</Name>
<Properties><Content-Length>1</Content-Length></Properties></Blob></Blobs><NextMarker>2</NextMarker></EnumerationResults>)"),
          test::to_bytes(R"([{"type":"directory","oid":"1","size":0,"path":"train"},
{"type":"file","oid":"9a","size":10240,"path":"train/0.tar","lfs":{"oid":"e3","size":10240}}])")};
}

void run(std::span<const std::byte> input) {
  for (const remote::Scheme store : {remote::Scheme::kS3, remote::Scheme::kAz, remote::Scheme::kHf}) {
    try {
      const remote::ListingPage page = remote::parse_listing_page(store, input, "s3://bucket/", "o/n/");
      volatile std::size_t touched = page.next.size();
      for (const remote::Listed& one : page.listed) {
        if (one.key.empty()) std::abort();  // every entry is named
        touched = touched + one.key.size() + one.etag.size() + one.size;
      }
    } catch (const DataError&) {  // it is another store's
    }
  }
}

void repair(test::Bytes&) {}

}  // namespace headrace::fuzz
