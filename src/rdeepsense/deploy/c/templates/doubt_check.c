        {
            const float ratio = epistemic[k] / epistemics[row * @NAME@_OUTPUTS + k];
            expect(ratio >= 1.0f - @tolerance@ && ratio <= 1.0f + @tolerance@, "epistemic");
        }
