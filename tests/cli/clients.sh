#!/usr/bin/env bash
# dtrun serve with SmolLM2 and client packages by other authors, each in an environment of its own, without tools. Their versions are
# pinned.
. "$(dirname "$0")/helpers.sh"
. "$(dirname "$0")/server.sh"
. "$(dirname "$0")/environment.sh"
model=$models/SmolLM2-135M-Instruct.Q4_1.gguf
[ -e "$model" ] || { echo 'SKIPPED: no models/SmolLM2-135M-Instruct.Q4_1.gguf: scripts/get-model smollm2 brings it'; exit 77; }

# by SCRIPT PACKAGES..: runs tests/serve/clients/with_SCRIPT.py in such an environment, with a server that has the options $with
with=()
by() {
  environment "$@" || return 0
  serve -m "$model" "${with[@]}"
  HF_HUB_OFFLINE=1 HF_HOME=$PWD/hf timeout 600 "$environment/bin/python" "$source_dir/tests/serve/clients/with_$1.py" "$url" >said 2>&1 || fail "$(tail -n 5 said)"
  echo "  $(tail -n 1 said)"
}

it_serves_openai() { by openai openai==3.57.0; }
it_knows_each_field_of_openai() {
  environment openai openai==3.57.0 || return 0
  serve --template chatml
  "$environment/bin/python" "$source_dir/tests/serve/fields.py" "$url" "$source_dir/tests/serve/fields.txt" "$source_dir" openai >said 2>&1 || fail "$(tail -n 5 said)"
}
it_serves_openai_responses() { by openai_responses openai==3.57.0; }
it_serves_agents_that_call_tools_in_ten_turns() {
  with=(--template "$source_dir/tests/serve/clients/tools.jinja")
  by agents openai-agents==0.24.0 openai==3.57.0
}
it_serves_anthropic() { by anthropic anthropic==2.14.0; }
it_serves_ollama() { by ollama ollama==0.6.3; }
it_serves_langchain() { by langchain langchain-openai==1.7.4 openai==3.57.0; }
it_serves_litellm() { by litellm litellm==1.110.2 openai==3.57.0; }
it_serves_llm() { by llm llm==0.36 openai==3.57.0; }
it_serves_smolagents() { by smolagents 'smolagents[openai]==1.26.0' openai==3.57.0; }
it_serves_dspy() { by dspy dspy==3.4.1; }
it_serves_llama_index() { by llama_index llama-index-llms-openai-like==0.8.1 llama-index-core==0.14.25; }
it_serves_lm_eval() { by lm_eval 'lm-eval[api]==0.4.13'; }
it_serves_guidellm() { by guidellm guidellm==0.8.1; }

run_tests
