// The step is bound last.

@group(0) @binding(STEP_AT) var<uniform> step: Step;
