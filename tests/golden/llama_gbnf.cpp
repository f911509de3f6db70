// llama.cpp's own converter of JSON schemas, which the package llama-cpp-python leaves out, for rivals_accept.py. SOURCE is
// vendor/llama.cpp in the source package, PACKAGE the folder of the installed one:
//
//   for file in tests/golden/llama_gbnf.cpp SOURCE/common/{common,json,json-schema,json-schema-to-grammar,trie,unicode}.cpp; do
//     g++ -O1 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -ISOURCE/common -ISOURCE/include -ISOURCE/ggml/include
//       -ISOURCE/vendor -ISOURCE/vendor/nlohmann -c $file
//   done
//   g++ -shared *.o -Wl,--gc-sections -LPACKAGE/lib -lllama -lggml -lggml-base -Wl,-rpath,PACKAGE/lib -o libllama_gbnf.so
#include "json-schema-to-grammar.h"

#include <cstring>

// The grammar, or what is wrong with the schema; the caller frees it.
extern "C" __attribute__((visibility("default"))) char *llama_gbnf(const char *schema, bool *converted) {
  try {
    *converted = true;
    return strdup(json_schema_to_grammar(common_json::parse(schema), true).c_str());
  } catch (const std::exception &error) {
    *converted = false;
    return strdup(error.what());
  }
}
