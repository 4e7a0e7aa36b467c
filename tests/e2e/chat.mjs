// Asks one question whole and as a stream, with OpenAI's own client set up by its environment
// variables only, and prints what came: {whole, streamed, chunks, usage, region}.
import OpenAI from "openai";

const client = new OpenAI({ maxRetries: 0 });
const asked = {
  model: "assistant",
  messages: [{ role: "user", content: process.argv[2] }],
  temperature: 0,
  max_tokens: 12,
};

const { data, response } = await client.chat.completions.create(asked).withResponse();

let streamed = "";
let chunks = 0;
let usage = null;
const stream = await client.chat.completions.create({
  ...asked,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  chunks += 1;
  usage = chunk.usage ?? usage;
}

const region = response.headers.get("x-domicile-region");
const whole = data.choices[0].message.content;
console.log(JSON.stringify({ whole, streamed, chunks, usage, region }));
