// Evaluates AWS policies with iam-simulate's engine: one JSON question on stdin, answers on stdout.
// {policies: {name: document}, checks: [{identity, control, resource, context}]} -> [bool]
// Each policy is validated first; a region-less model ARN is checked by the core engine, since
// the front end's resource patterns want a region.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import path from "node:path";

const root = path.join(process.argv[2], "node_modules/@cloud-copilot");
const load = (file) => import(pathToFileURL(path.join(root, file)));
const inside = "iam-simulate/dist/esm";
const { authorize } = await load(`${inside}/core_engine/CoreSimulatorEngine.js`);
const { AwsRequestImpl } = await load(`${inside}/request/request.js`);
const { RequestContextImpl } = await load(`${inside}/requestContext.js`);
const { DiscoveryContextKeyConstraints } = await load(`${inside}/context_keys/discoveryContextKeyConstraints.js`);
const { loadPolicy, validateIdentityPolicy, validateServiceControlPolicy } = await load("iam-policy/dist/esm/index.js");

const asked = JSON.parse(readFileSync(0, "utf8"));
const account = "123456789012";
const full = { Version: "2012-10-17", Statement: [{ Effect: "Allow", Action: "*", Resource: "*" }] };
const loaded = { full: loadPolicy(full, { name: "full" }) };
for (const [name, { kind, document }] of Object.entries(asked.policies)) {
  const validate = kind === "control" ? validateServiceControlPolicy : validateIdentityPolicy;
  const wrong = validate(document);
  if (wrong.length > 0) throw new Error(`${name}: ${JSON.stringify(wrong)}`);
  loaded[name] = loadPolicy(document, { name });
}
const simulationParameters = {
  simulationMode: "Strict",
  discoveryContextKeyConstraints: new DiscoveryContextKeyConstraints([]),
};
const answers = asked.checks.map(({ identity, control, resource, context, action }) => {
  const controls = [loaded.full, ...(control ? [loaded[control]] : [])];
  return authorize({
    request: new AwsRequestImpl(
      `arn:aws:iam::${account}:role/router`, { resource, accountId: account }, action,
      new RequestContextImpl(context), false,
    ),
    sessionPolicy: undefined,
    identityPolicies: [loaded[identity ?? "full"]],
    serviceControlPolicies: [{ orgIdentifier: "root", policies: controls }],
    resourceControlPolicies: [],
    resourcePolicy: undefined,
    permissionBoundaries: undefined,
    vpcEndpointPolicies: undefined,
    simulationParameters,
    serviceSettings: {},
  }).result === "Allowed";
});
process.stdout.write(JSON.stringify(answers));
