#!/usr/bin/env bash
# dtrun serve and client packages by other authors, each in an environment of its own, with SmolLM2 and, if DTRUN_CODER names a GGUF file of
# Qwen2.5-Coder (0.5B), with that. tests/serve/clients/README.md has the table of what they can do. Their versions are pinned. DTRUN_CLIENTS names
# a folder that keeps the environments for the next run; otherwise each is made again.
. "$(dirname "$0")/helpers.sh"
. "$(dirname "$0")/server.sh"
. "$(dirname "$0")/environment.sh"
model=$models/SmolLM2-135M-Instruct.Q4_1.gguf
[ -e "$model" ] || { echo 'SKIPPED: no models/SmolLM2-135M-Instruct.Q4_1.gguf: scripts/get-model smollm2 brings it'; exit 77; }

clients=$source_dir/tests/serve/clients
coder=${DTRUN_CODER:-$models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf}
[ -e "$coder" ] || echo "SKIPPED: the table's rows of Qwen2.5-Coder: no $coder (DTRUN_CODER names a GGUF file of it)"

# asks SCRIPT: runs with_SCRIPT.py in the environment, with the server
asks() {
  HF_HUB_OFFLINE=1 HF_HOME=$PWD/hf LITELLM_LOCAL_MODEL_COST_MAP=True timeout 600 "$environment/bin/python" "$clients/with_$1.py" "$url" >said 2>&1 ||
    fail "$(tail -n 5 said)"
  echo "  $(tail -n 1 said)"
}
# by SCRIPT PACKAGES..: runs with_SCRIPT.py in such an environment, with a server that has SmolLM2
by() {
  environment "$@" || return 0
  serve -m "$model"
  asks "$1"
}
small=() # options of the server with SmolLM2 only
# fills OPTIONS.. -- SCRIPT PACKAGES..: the same with each model, and with these options of the server. The last line is the table's.
fills() {
  local options=() file
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  environment "$@" || return 0
  for file in "$model" "$coder"; do
    [ -e "$file" ] || continue
    if [ "$file" = "$model" ]; then
      serve -m "$file" --served-model-name SmolLM2-135M "${options[@]}" "${small[@]}"
    else
      serve -m "$file" --served-model-name Qwen2.5-Coder-0.5B "${options[@]}"
    fi
    asks "$1"
    grep -qxF "$(tail -n 1 said)" "$clients/README.md" || fail "the table in $clients/README.md has no such row"
  done
}
brackets=(--template "$clients/brackets.jinja")

it_knows_each_field_of_openai() {
  environment openai openai==3.57.0 || return 0
  serve --template chatml
  "$environment/bin/python" "$source_dir/tests/serve/fields.py" "$url" "$source_dir/tests/serve/fields.txt" "$source_dir" openai >said 2>&1 || fail "$(tail -n 5 said)"
}
it_serves_openai() { fills -- openai openai==3.57.0; }
it_serves_openai_responses() { fills -- openai_responses openai==3.57.0; }
it_serves_instructor() { fills "${brackets[@]}" -- instructor instructor==1.17.0 openai==3.3.0; }
it_serves_langchain() { fills -- langchain langchain-openai==1.7.4 openai==3.57.0; }
it_serves_litellm() { fills -- litellm litellm==1.110.2 openai==3.57.0; }
it_serves_pydantic_ai() { fills "${brackets[@]}" -- pydantic_ai 'pydantic-ai-slim[openai]==2.68.0' openai==3.57.0; }
it_serves_llm() { fills "${brackets[@]}" -- llm llm==0.36 openai==3.57.0; }
it_serves_smolagents() { fills -- smolagents 'smolagents[openai]==1.26.0' openai==3.57.0; }
it_serves_agents_that_call_tools_in_ten_turns() {
  small=(--template "$clients/tools.jinja")
  fills -- agents openai-agents==0.24.0 openai==3.57.0
}
it_serves_dspy() { fills -- dspy dspy==3.4.1; }
it_serves_llama_index() { fills -- llama_index llama-index-llms-openai-like==0.8.1 llama-index-core==0.14.25; }
it_serves_aider() { fills -n 400 -- aider aider-chat==0.86.2; }
it_serves_anthropic() { fills -- anthropic anthropic==2.14.0; }
it_serves_ollama() { fills "${brackets[@]}" -- ollama ollama==0.6.3; }
it_serves_lm_eval() { by lm_eval 'lm-eval[api]==0.4.13'; }
it_serves_guidellm() { by guidellm guidellm==0.8.1; }

run_tests
