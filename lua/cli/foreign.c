/* Options of other programs: see foreign.h. */
#include "cli/foreign.h"

#include "request/fields.h"

#define LINES "dtrun chat takes several lines between \"\"\"; --chat asks one question"
#define CHAT "a conversation is dtrun chat, its /help lists its commands; --chat asks one question"
#define DRAFTED                                                                                                        \
  "the policy decides how much is drafted, as in linear --set K=8; dtrun POLICY --help lists its parameters"
#define NOT_YET "not supported yet: "
#define NGRAMS NOT_YET "penalties apply to single tokens: --repeat-penalty, --presence-penalty, --frequency-penalty"
#define SAMPLERS NOT_YET "sampling has --temp, --top-k, --top-p and --min-p"
#define GRAMMAR "--json-schema TEXT takes a schema, --grammar TEXT a grammar (GBNF), --regex TEXT a regular expression"
#define DEVICE "--backend cpu or cuda; --gpu-layers N splits the target between both"
#define SPLIT "--gpus N divides the target's layers among N GPUs"
#define EXPERTS "--cpu-experts N has the CPU compute the experts of the first N layers"
#define RANKS "mpirun -n R dtrun shares the target among R processes"
#define PLACED "taskset, numactl and nice do this for any program; -t N sets the threads"
#define ROPE "--rope-scaling TYPE --rope-scale N scales positions"
#define STOPS "--stop TEXT ends the text before TEXT"
#define CACHE "--cache-dtype TYPE is the type of the KV cache"
#define WEIGHTS "weights are used as in the file; --weights q8 or q4 rounds them"
#define DRAFT_BOTH "-c and -t apply to the draft too"
#define ADAPTER NOT_YET "merge the adapter into the model's files first"
#define PROMPT_KEPT NOT_YET "in a driver, pair:prefix computes a prompt once for many runs"
#define IN_MEMORY "weights are read into memory once and stay there"
#define PASSES "a prompt is split into passes that suit the machine"
#define AROUND "the chat template writes the marks around a question: --template NAME or FILE"
#define SHELL "the shell does it: -p $'one\\ntwo'"
#define LOG "messages are lines on standard error: 2>FILE keeps them, -q leaves the summary out"
#define SERVER NOT_YET "dtrun serve keeps its model until it ends"
#define DOWNLOAD "dtrun pull OWNER/NAME:FILE downloads a file, -m OWNER/NAME:FILE loads it; :Q4_K_M works too"
#define TEXTS "only text models are supported"
#define STREAM "text is printed as it comes, and the prompt is not repeated"
#define CORPUS "the policy suffix with --corpus FILE searches a text"

static const foreign_option foreign[] = {
    {"-i --interactive -if --interactive-first -cnv --conversation --simple-io", CHAT},
    {"-mli --multiline-input", LINES},
    {"-no-cnv --no-conversation", "without --chat a text is continued as it is"},
    {"--jinja --no-jinja", "--chat runs the model's own template"},
    {"--chat-template-kwargs", "--template-set NAME=VALUE sets a variable of the template"},
    {"-sysf --system-prompt-file", "--system \"$(cat FILE)\""},
    {"--in-prefix --in-suffix --in-prefix-bos", AROUND},
    {"-r --reverse-prompt --stop-strings --stop-sequences --stop-string", STOPS},
    {"--stop-token-ids --eos-token-id", "the model's end-of-text ends the text; " STOPS},
    {"--file -bf --binary-file", "-f FILE reads a prompt byte for byte"},
    {"-e --escape --no-escape", SHELL},
    {"--keep", "--window N --sinks M keeps the first M tokens"},
    {"--no-context-shift --context-shift", "the text ends when the context is full; with --window N it continues"},
    {"--max-length", "-n N limits new tokens, -c N prompt and new tokens"},
    {"--min-length", "--min-tokens N counts new tokens"},
    {"--prompt-cache --prompt-cache-all --prompt-cache-ro", PROMPT_KEPT},
    {"--no-display-prompt --stream --no-stream", STREAM},

    {"--repeat-last-n", "penalties consider the whole text, as in Hugging Face and OpenAI"},
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
    {"-tb --threads-batch", "-t N applies to all passes"},

    {"--num-gpu -ngld --gpu-layers-draft -dev --device -devd --device-draft "
     "--device-map",
     DEVICE},
    {"-sm --split-mode -ts --tensor-split -mg --main-gpu -tp --tensor-parallel-size --pipeline-parallel-size", SPLIT},
    {"-cmoe --cpu-moe -ot --override-tensor", EXPERTS},
    {"--rpc", RANKS},
    {"--cpu-mask --cpu-range --cpu-strict --prio --poll", PLACED},
    {"--mlock --no-mmap --mmap --use-mmap --low-vram", IN_MEMORY},
    {"-b --batch-size -ub --ubatch-size --num-batch --max-num-batched-tokens", PASSES},
    {"-cb --cont-batching", "with several prompts, the next one begins when one ends"},
    {"-fa --flash-attn", "dtrun has one kind of attention, which is exact"},
    {"--gpu-memory-utilization --swap-space", "-c N limits the memory of the KV cache"},
    {"--enforce-eager --trust-remote-code", "dtrun runs no code that comes with a model"},
    {"-ctk --cache-type-k -ctv --cache-type-v --kv-cache-dtype", CACHE},
    {"--dtype --torch-dtype --load-in-8bit --load-in-4bit --quantization --quantize", WEIGHTS},
    {"--rope-freq-base --rope-freq-scale --yarn-ext-factor --hf-overrides", ROPE},
    {"--lora --lora-scaled --lora-base --enable-lora --control-vector", ADAPTER},
    {"--tokenizer", "a model's files hold its tokenizer"},
    {"--mmproj --image --audio --embedding --embeddings", TEXTS},

    {"-mu --model-url -hff --hf-file", DOWNLOAD},
    {"-hft --hf-token", "HF_TOKEN=TOKEN dtrun pull OWNER/NAME, or hf auth login once"},
    {"--revision", NOT_YET "dtrun pull downloads a model's main revision"},
    {"--keepalive", SERVER},
    {"--log-file --log-disable --log-verbosity -lv --log-prefix --log-timestamps --no-perf", LOG},
    {"--verbose-prompt", "the result of --json FILE has the prompt's ids"},
    {"--list-devices", "dtrun doctor reports on this machine"},
    {"--nowordwrap", "lines are not wrapped"},
};

const foreign_option *foreign_find(const char *arg, size_t n) {
  for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
    if (request_has_name(foreign[k].names, arg, n)) return &foreign[k];
  return NULL;
}
