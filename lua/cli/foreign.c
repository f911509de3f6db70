/* Options of other programs: see foreign.h. */
#include "cli/foreign.h"

#include "request/fields.h"

#define LINES "dtrun chat takes several lines between \"\"\"; --chat asks one question"
#define CHAT "a conversation is dtrun chat, its /help lists its commands; --chat asks one question"
#define DRAFTED                                                                                                        \
  "the policy decides how much is drafted, as in linear --set K=8; dtrun POLICY --help lists its parameters"
#define NOT_YET "not here yet: "
#define NGRAMS NOT_YET "penalties are of single tokens: --repeat-penalty, --presence-penalty, --frequency-penalty"
#define SAMPLERS NOT_YET "sampling knows --temp, --top-k, --top-p and --min-p"
#define GRAMMAR "--json-schema TEXT takes a schema, --grammar TEXT a grammar (GBNF), --regex TEXT a regular expression"
#define DEVICE "--backend cpu or cuda says where all layers are"
#define SPLIT "one GPU serves a process; mpirun -n R dtrun shares the target among R processes"
#define PLACED "taskset, numactl and nice do this for any program; -t says how many threads"
#define ROPE "a model's files say how it encodes positions"
#define STOPS "--stop TEXT ends the text before TEXT"
#define CACHE "--cache-dtype TYPE is that of keys and values"
#define WEIGHTS "weights are as in the file; --weights q8 or q4 rounds them"
#define DRAFT_BOTH "-c and -t are the draft's too"
#define ADAPTER NOT_YET "merge the adapter into the model's files first"
#define PROMPT_KEPT NOT_YET "in a driver, pair:prefix computes a prompt once for many runs"
#define IN_MEMORY "weights are read into memory once and stay there"
#define PASSES "a prompt is cut into passes that suit the machine"
#define AROUND "--template NAME chooses the marks around a question"
#define SHELL "the shell does it: -p $'one\\ntwo'"
#define LOG "messages are lines on standard error: 2>FILE keeps them, -q leaves the summary out"
#define SERVER NOT_YET "dtrun serve keeps its model until it ends"
#define DOWNLOAD "dtrun pull OWNER/NAME:FILE brings a file, -m OWNER/NAME:FILE then takes it; :Q4_K_M will do"
#define TEXTS "models of text only"
#define STREAM "text is printed as it comes, and the prompt is not repeated"
#define CORPUS "suffix --corpus FILE looks things up in a text"

static const foreign_option foreign[] = {
    {"-i --interactive -if --interactive-first -cnv --conversation --simple-io", CHAT},
    {"-mli --multiline-input", LINES},
    {"-no-cnv --no-conversation", "a text is continued as it is, unless there is --chat"},
    {"--jinja --no-jinja", "--chat takes the layout of the model's own template"},
    {"--chat-template-file", "--template NAME names a layout; programs in Jinja are not run"},
    {"-sysf --system-prompt-file", "--system \"$(cat FILE)\""},
    {"--in-prefix --in-suffix --in-prefix-bos", AROUND},
    {"-r --reverse-prompt --stop-strings --stop-sequences --stop-string", STOPS},
    {"--stop-token-ids --eos-token-id", "the model's end-of-text ends the text; " STOPS},
    {"--file -bf --binary-file", "-f FILE reads a prompt, bytes as they are"},
    {"-e --escape --no-escape", SHELL},
    {"--keep", "--window N with --sinks M keeps the first M tokens"},
    {"--no-context-shift --context-shift", "the text ends where the context does; --window N goes on"},
    {"--max-length", "-n N is of new tokens, -c N of prompt and new tokens"},
    {"--min-length", "--min-tokens N is of new tokens"},
    {"--prompt-cache --prompt-cache-all --prompt-cache-ro", PROMPT_KEPT},
    {"--no-display-prompt --stream --no-stream", STREAM},

    {"--repeat-last-n", "penalties look at all of the text, as those of Hugging Face and OpenAI do"},
    {"--no-repeat-ngram-size --dry-multiplier --dry-base --dry-allowed-length", NGRAMS},
    {"--mirostat --mirostat-lr --mirostat-ent --typical --typical-p --tfs --xtc-probability --xtc-threshold "
     "--top-nsigma "
     "--dynatemp-range --epsilon-cutoff --eta-cutoff",
     SAMPLERS},
    {"--samplers --sampling-seq --sampler-seq", "the order is temperature, --top-k, --top-p, --min-p"},
    {"--bad-words --suppress-tokens", "--logit-bias ID-inf bans a token"},
    {"--format --guided-json", GRAMMAR},
    {"--do-sample", "--temp T above 0 samples"},
    {"--greedy", "without --temp the likeliest token is taken"},
    {"--num-beams --best-of", NOT_YET "--answers N samples several answers"},

    {"--draft-max --draft-n --draft-min --draft-n-min --draft-p-min --draft-p-split --num-assistant-tokens "
     "--num-speculative-tokens --assistant-confidence-threshold --speculative-config --spec-type",
     DRAFTED},
    {"--prompt-lookup-num-tokens", "prompt_lookup is a policy: dtrun prompt_lookup --help"},
    {"-lcs --lookup-cache-static -lcd --lookup-cache-dynamic", CORPUS},
    {"-cd --ctx-size-draft -td --threads-draft", DRAFT_BOTH},
    {"-tb --threads-batch", "-t N is for all passes"},

    {"-ngl --gpu-layers --n-gpu-layers --num-gpu -ngld --gpu-layers-draft -dev --device -devd --device-draft "
     "--device-map",
     DEVICE},
    {"-sm --split-mode -ts --tensor-split -mg --main-gpu -tp --tensor-parallel-size --pipeline-parallel-size --rpc",
     SPLIT},
    {"--numa --cpu-mask --cpu-range --cpu-strict --prio --poll", PLACED},
    {"--mlock --no-mmap --mmap --use-mmap --low-vram", IN_MEMORY},
    {"-b --batch-size -ub --ubatch-size --num-batch --max-num-batched-tokens", PASSES},
    {"-cb --cont-batching", "of several prompts, one that ends makes room for the next"},
    {"-fa --flash-attn", "there is one kind of attention here, and it is exact"},
    {"--gpu-memory-utilization --swap-space", "-c N bounds the memory of keys and values"},
    {"--enforce-eager --trust-remote-code", "no code that comes with a model is run"},
    {"-ctk --cache-type-k -ctv --cache-type-v --kv-cache-dtype", CACHE},
    {"--dtype --torch-dtype --load-in-8bit --load-in-4bit --quantization --quantize", WEIGHTS},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor", ROPE},
    {"--lora --lora-scaled --lora-base --enable-lora --control-vector", ADAPTER},
    {"--tokenizer", "a model's files hold its tokenizer"},
    {"--mmproj --image --audio --embedding --embeddings", TEXTS},

    {"-mu --model-url -hff --hf-file", DOWNLOAD},
    {"-hft --hf-token", "HF_TOKEN=TOKEN dtrun pull OWNER/NAME, or hf auth login once"},
    {"--revision", NOT_YET "dtrun pull brings a model's main revision"},
    {"--keepalive", SERVER},
    {"--log-file --log-disable --log-verbosity -lv --log-prefix --log-timestamps --no-perf", LOG},
    {"--verbose-prompt", "--json FILE holds the prompt's ids"},
    {"--list-devices", "dtrun doctor reports on this machine"},
    {"--nowordwrap", "lines are not wrapped"},
};

const foreign_option *foreign_find(const char *arg, size_t n) {
  for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
    if (request_has_name(foreign[k].names, arg, n)) return &foreign[k];
  return NULL;
}
