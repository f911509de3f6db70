/* Pre-tokenizers of GGUF files: see gguf_pre.h. The patterns are those of the models' tokenizer.json; llama.cpp's
 * patterns differ for rare characters (U+017F after an apostrophe). */
#include "text/gguf_pre.h"

#include "text/pattern.h"

#include <string.h>

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define ENDING "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define SYMBOLS_AND_SPACE " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

static const char *const gpt2[] = {PATTERN_GPT2, NULL};
static const char *const digits[] = {"\\p{N}", PATTERN_GPT2, NULL};
static const char *const llama3[] = {CONTRACTION "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" SYMBOLS_AND_SPACE, NULL};
static const char *const qwen2[] = {CONTRACTION "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" SYMBOLS_AND_SPACE, NULL};
static const char *const tekken[] = {"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER
                                     "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
                                     NULL};
static const char *const qwen35[] = {
    CONTRACTION "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"
                "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const o200k[] = {"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ENDING "|[^\\r\\n\\p{L}\\p{N}]?" UPPER
                                    "+" LOWER "*" ENDING
                                    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
                                    NULL};
static const char *const deepseek_coder[] = {
    "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+", "\\p{N}", NULL};

static const gguf_pre known[] = {
    {.name = "gpt-2", .patterns = gpt2},
    {.name = "olmo", .patterns = gpt2, .nfc = true}, /* also GPT-NeoX and Pythia */
    {.name = "mpt", .patterns = gpt2, .nfc = true},
    {.name = "smollm", .patterns = digits},
    {.name = "starcoder", .patterns = digits},
    {.name = "refact", .patterns = digits},
    {.name = "command-r", .patterns = digits, .nfc = true},
    {.name = "llama-bpe", .patterns = llama3, .whole = true, .begin = true},
    {.name = "llama3", .patterns = llama3, .whole = true, .begin = true},
    {.name = "llama-v3", .patterns = llama3, .whole = true, .begin = true},
    {.name = "smaug-bpe", .patterns = llama3}, /* also SmolLM3 */
    {.name = "glm4", .patterns = llama3, .whole = true},
    {.name = "chatglm-bpe", .patterns = llama3},
    {.name = "dbrx", .patterns = llama3},  /* cl100k: Phi-4, OLMo 2, Granite 4 */
    {.name = "gpt-4o", .patterns = o200k}, /* Phi-4-mini, gpt-oss */
    {.name = "qwen2", .patterns = qwen2, .nfc = true},
    {.name = "deepseek-r1-qwen", .patterns = qwen2, .nfc = true},
    {.name = "qwen35", .patterns = qwen35, .nfc = true},
    {.name = "tekken", .patterns = tekken, .whole = true, .begin = true},
    {.name = "deepseek-coder", .patterns = deepseek_coder},
};

const gguf_pre *gguf_pre_find(const char *name, size_t len) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strlen(known[i].name) == len && memcmp(known[i].name, name, len) == 0) return &known[i];
  return NULL;
}
