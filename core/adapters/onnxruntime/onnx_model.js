'use strict';
// An ONNX model of one operator, as the bytes that a session is made from. The messages are those fields of onnx.proto
// (onnx/onnx, IR version 10) that such a model needs.
const protobuf = require('protobufjs');

const { root } = protobuf.parse(`
  syntax = "proto2";
  message ModelProto {
    optional int64 ir_version = 1; optional GraphProto graph = 7; repeated OperatorSetIdProto opset_import = 8;
  }
  message OperatorSetIdProto { optional string domain = 1; optional int64 version = 2; }
  message GraphProto {
    repeated NodeProto node = 1; optional string name = 2;
    repeated ValueInfoProto input = 11; repeated ValueInfoProto output = 12;
  }
  message NodeProto {
    repeated string input = 1; repeated string output = 2; optional string op_type = 4;
    repeated AttributeProto attribute = 5; optional string domain = 7;
  }
  message AttributeProto {
    optional string name = 1; optional float f = 2; optional int64 i = 3; optional int32 type = 20;
  }
  message ValueInfoProto { optional string name = 1; optional TypeProto type = 2; }
  message TypeProto { optional TensorType tensor_type = 1; }
  message TensorType { optional int32 elem_type = 1; optional TensorShapeProto shape = 2; }
  message TensorShapeProto { repeated Dimension dim = 1; }
  message Dimension { optional int64 dim_value = 1; }
`, { keepCase: true });
const ModelProto = root.lookupType('ModelProto');

const IR_VERSION = 10;
/** TensorProto.DataType by the names of onnxruntime's JavaScript interface. */
const ELEMENT_TYPES = { float32: 1, int32: 6, int64: 7, bool: 9, float16: 10, float64: 11, bfloat16: 16 };
/** AttributeProto.AttributeType. */
const FLOAT = 1, INT = 2;

function value({ name, type, rank }) {
  // Dimensions without a number: any length.
  const shape = { dim: Array.from({ length: rank }, () => ({})) };
  return { name, type: { tensor_type: { elem_type: ELEMENT_TYPES[type], shape } } };
}

/**
 * operator { type, domain ('': ONNX's own), version, floats {}, ints {} } over inputs and outputs
 * [{ name, type, rank }], in the operator's order; null is an optional one left out.
 */
function modelOf({ type, domain, version, floats = {}, ints = {} }, inputs, outputs) {
  const names = (values) => values.map((x) => x?.name ?? '');
  const infos = (values) => values.filter(Boolean).map(value);
  const node = {
    op_type: type, domain, input: names(inputs), output: names(outputs),
    attribute: [
      ...Object.entries(floats).map(([name, f]) => ({ name, f, type: FLOAT })),
      ...Object.entries(ints).map(([name, i]) => ({ name, i, type: INT })),
    ],
  };
  const graph = { name: type, node: [node], input: infos(inputs), output: infos(outputs) };
  return ModelProto.encode({ ir_version: IR_VERSION, opset_import: [{ domain, version }], graph }).finish();
}

module.exports = { modelOf };
